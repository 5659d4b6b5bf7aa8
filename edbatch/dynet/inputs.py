"""What enters the graph: arrays, numbers that may be set anew, constants, random numbers, rows of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer, number, positive, probability
from edbatch.dynet.draws import generator
from edbatch.dynet.expression import one_or_batch
from edbatch.dynet.implicit import DynetIndexError, DynetTypeError, implicit
from edbatch.dynet.parameters import LookupParameters, Parameters, lookup_row
from edbatch.errors import EdBatchError, shown
from edbatch.graph.record import array_input


def _settable(value: np.ndarray) -> Any:
    graph: Any = implicit.recorded_into()
    made = array_input(graph, value)
    if graph is not implicit.graph:
        return made
    # Where expressions are checked, this one has run, and its array is with what has.
    implicit.settable[made.id] = graph.inputs[-1] if graph.inputs else np.array(value, graph.dtype)
    return graph.handle.of_inputs(graph, made.id, made.spec)


def scalarInput(s: float, device: str = "") -> Any:
    """A number, which may be `set`."""
    return _settable(np.full(1, number("scalarInput: s", s)))


def vecInput(dim: int, device: str = "") -> Any:
    """A vector of zeros, which is to be `set`."""
    return _settable(np.zeros(integer("vecInput: dim", dim, 1)))


def inputVector(v: Any, device: str = "") -> Any:
    """A vector, which may be `set`."""
    found = np.asarray(v if hasattr(v, "__len__") else list(v))
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        raise DynetTypeError(f"inputVector: expected a list of numbers, got {shown(v)}")
    return _settable(found)


def inputTensor(arr: Any, batched: bool = False, device: str = "", reusable_expr: bool = False) -> Any:
    """An array; `batched`: the last axis is of a mini-batch; `reusable_expr` is no matter: all arrays may be `set`."""
    found = np.asarray(arr)
    if not found.ndim or found.dtype.kind not in "fiub":
        raise DynetTypeError("Input Tensor should be a numpy.ndarray or a valid list of floats")
    if not batched:
        return _settable(found)
    implicit.recorded_into()
    rows = np.moveaxis(found, -1, 0)
    return one_or_batch(eb.array(np.ascontiguousarray(rows if rows.ndim > 1 else rows[:, None])))


def inputTensorTranspose(arr: Any, dim: Sequence[int] = (), batch_size: int = 1, device: str = "") -> Any:
    """An array of the entries of a vector, column by column; those of a mini-batch follow one another."""
    found = np.asarray(arr, np.float32).reshape(-1)
    shape = tuple(int(size) for size in dim) or found.shape
    if math.prod(shape) * batch_size != found.size:
        raise EdBatchError(f"inputTensorTranspose: {found.size} entries for {batch_size} of dimensions {shape}")
    if batch_size == 1:
        return _settable(found.reshape(shape, order="F"))
    return inputTensor(found.reshape((*shape, batch_size), order="F"), batched=True)


def matInput(d1: int, d2: int) -> Any:
    """A matrix of zeros, which is to be `set`, column by column."""
    return _settable(np.zeros((integer("matInput: d1", d1, 1), integer("matInput: d2", d2, 1))))


def inputMatrix(v: Sequence[float], d: tuple[int, int]) -> Any:
    """A matrix, of its entries column by column."""
    return _settable(np.reshape(np.asarray(v, np.float32), d, order="F"))


def sparse_inputTensor(
    idxs: Sequence[Sequence[int]], values: Sequence[float], shape: Sequence[int], batched: bool = False,
    defval: float = 0.0, device: str = "",
) -> Any:  # fmt: skip
    """An array that is `defval` but for some entries, whose numbers `idxs` lists axis by axis."""
    dense = np.full(tuple(shape), defval, np.float32)
    places = tuple(np.asarray([integer("sparse_inputTensor: idxs", at) for at in axis], np.int64) for axis in idxs)
    if len(places) != dense.ndim or any(len(axis) != len(values) for axis in places):
        raise EdBatchError(
            f"sparse_inputTensor: expected {len(values)} indices for each of {dense.ndim} axes, as there are so many "
            f"values, got {[len(axis) for axis in places]}"
        )
    dense[places] = values
    return inputTensor(dense, batched)


def _filled(dim: Any, batch_size: int, make: Any) -> Any:
    """What a function makes of a shape; of several if it is to be a mini-batch."""
    shape = tuple(integer("dim", size, 1) for size in ([dim] if np.ndim(dim) == 0 else dim))
    implicit.recorded_into()
    if batch_size == 1:
        return eb.input(np.asarray(make(shape), np.float32))
    return eb.array(np.asarray(make((batch_size, *shape)), np.float32))


def zeros(dim: Any, batch_size: int = 1) -> Any:
    """Zeros."""
    if batch_size > 1:
        return _filled(dim, batch_size, np.zeros)
    implicit.expect()
    return eb.zeros(dim)


def ones(dim: Any, batch_size: int = 1) -> Any:
    """Ones."""
    if batch_size > 1:
        return _filled(dim, batch_size, np.ones)
    implicit.expect()
    return eb.ones(dim)


zeroes = zeros


def constant(dim: Any, val: float, batch_size: int = 1) -> Any:
    """The same number everywhere."""
    return _filled(dim, batch_size, lambda shape: np.full(shape, val))


def one_hot(d: int, idx: int, device: str = "") -> Any:
    """Zeros, and a one."""
    if integer("one_hot: idx", idx) >= integer("one_hot: d", d, 1):
        raise DynetIndexError(f"one_hot: index {idx} is out of range for {d} entries")
    return _filled(d, 1, lambda shape: np.eye(d)[idx])


def random_normal(dim: Any, mean: float = 0.0, stddev: float = 1.0, batch_size: int = 1) -> Any:
    """Gaussian numbers."""
    return _filled(
        dim, batch_size, lambda shape: generator().normal(mean, positive("random_normal: stddev", stddev), shape)
    )


def random_bernoulli(dim: Any, p: float, scale: float = 1.0, batch_size: int = 1) -> Any:
    """`scale` with probability p, else 0."""
    p = probability("random_bernoulli: p", p)
    return _filled(dim, batch_size, lambda shape: scale * (generator().random(shape) < p))


def random_uniform(dim: Any, left: float, right: float, batch_size: int = 1) -> Any:
    """Numbers in [left, right)."""
    return _filled(dim, batch_size, lambda shape: generator().uniform(left, right, shape))


def random_gumbel(dim: Any, mu: float = 0.0, beta: float = 1.0, batch_size: int = 1) -> Any:
    """Numbers of Gumbel's distribution."""
    return _filled(dim, batch_size, lambda shape: generator().gumbel(mu, beta, shape))


def lookup(p: LookupParameters, index: int = 0, update: bool = True) -> Any:
    """A row of a table; with `update=False` no gradient reaches it."""
    implicit.expect()
    found = lookup_row(p, index)
    return found if update else eb.stop_gradient(found)


def lookup_batch(p: LookupParameters, indices: Sequence[int], update: bool = True) -> Any:
    """Rows of a table, as a mini-batch."""
    return p.batch(indices, update)


def parameter(*parameters: Any) -> Any:
    """The parameter itself, of several a tuple: they are expressions."""
    for one in parameters:
        if not isinstance(one, Parameters | LookupParameters):
            raise EdBatchError(f"Only Parameters and LookupParameters are accepted, got {type(one).__name__}")
    found = tuple(x.expr() if isinstance(x, LookupParameters) else x for x in parameters)
    return found[0] if len(found) == 1 else found


def const_parameter(p: Any) -> Any:
    """The value of a parameter, through which no gradient flows."""
    return p.expr(False)
