"""What enters the graph: arrays, numbers that may be set anew, constants, parameters, rows of tables, what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer, named, sizes
from edbatch.dynet.expression import count, node, one_or_batch
from edbatch.dynet.implicit import implicit
from edbatch.dynet.parameters import LookupParameters
from edbatch.graph.record import array_input

_state = {"generator": np.random.default_rng()}


def generator() -> np.random.Generator:
    """The one generator of the module."""
    return _state["generator"]


def reset_random_seed(seed: int) -> None:
    """Begin all that is drawn anew: initial values, noise, and the masks of dropout."""
    _state["generator"] = np.random.default_rng(seed)
    eb.seed(seed)


def kept(shape: tuple[int, ...], rate: float) -> np.ndarray:
    """A mask of dropout: 0 with the probability `rate`, else 1 / (1 - rate)."""
    return (generator().random(shape) >= rate) / (1 - rate if rate < 1 else 1)


def filled(dim: Any, batch_size: int, make: Any) -> Any:
    """What a function makes of a shape; of several if it is to be a mini-batch."""
    shape = sizes("dim", dim)
    implicit.recorded_into()
    if batch_size == 1:
        return eb.input(np.asarray(make(shape), np.float32))
    return eb.array(np.asarray(make((batch_size, *shape)), np.float32))


def _normal(dim: Any, mean: float = 0.0, stddev: float = 1.0, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().normal(mean, stddev, shape))


def _bernoulli(dim: Any, p: float, scale: float = 1.0, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: scale * (generator().random(shape) < p))


def _uniform(dim: Any, left: float, right: float, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().uniform(left, right, shape))


def _gumbel(dim: Any, mu: float = 0.0, beta: float = 1.0, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: generator().gumbel(mu, beta, shape))


def _dropout(x: Any, p: float) -> Any:
    return (eb.dropout(x, p) if p else node(x)) if p != 1 else eb.multiply(x, 0.0)


def _dropout_dim(x: Any, d: int, p: float) -> Any:
    shape = tuple(1 if axis == d else size for axis, size in enumerate(x.spec.shape))
    return eb.multiply(x, filled(shape, count(x), lambda shape: kept(shape, p)))


def _noise(x: Any, stddev: float) -> Any:
    return eb.add(x, _normal(x.spec.shape or 1, 0.0, stddev, count(x)))


def _settable(value: np.ndarray) -> Any:
    graph: Any = implicit.recorded_into()
    made = array_input(graph, value)
    if graph is not implicit.graph:
        return made
    implicit.settable[made.id] = graph.inputs[-1]
    return graph.expression_class.of_inputs(graph, made.id, made.spec)


def _vector(v: Any, device: str = "") -> Any:
    found = np.asarray(v if hasattr(v, "__len__") else list(v))
    return _tensor(found)


def _tensor(arr: Any, batched: bool = False, device: str = "", reusable_expr: bool = False) -> Any:
    found = np.asarray(arr)
    if not batched:
        return _settable(found)
    implicit.recorded_into()
    rows = np.moveaxis(found, -1, 0)
    return one_or_batch(eb.array(np.ascontiguousarray(rows if rows.ndim > 1 else rows[:, None])))


def _sparse_tensor(
    idxs: Sequence[Sequence[int]], values: Sequence[float], shape: Sequence[int], batched: bool = False,
    defval: float = 0.0, device: str = "",
) -> Any:  # fmt: skip
    dense = np.full(tuple(shape), defval, np.float32)
    for at, value in zip(np.ravel_multi_index(tuple(idxs), dense.shape), values, strict=True):
        dense.flat[at] = value
    return _tensor(dense, batched)


def _constants(of_graph: Callable[..., Any], of_batch: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a shape: EdBatch's constant, or a mini-batch of NumPy's."""

    def constants(dim: Any, batch_size: int = 1) -> Any:
        if batch_size > 1:
            return filled(dim, batch_size, of_batch)
        implicit.recorded_into()
        return of_graph(dim)

    return constants


def _constant(dim: Any, val: float, batch_size: int = 1) -> Any:
    return filled(dim, batch_size, lambda shape: np.full(shape, val))


def _lookup(p: LookupParameters, index: int = 0, update: bool = True) -> Any:
    found = p[index]
    return found if update else eb.stop_gradient(found)


def _parameter(*parameters: Any) -> Any:
    found = tuple(x.expr() for x in parameters)
    return found[0] if len(found) == 1 else found


_ZEROS = _constants(eb.zeros, np.zeros)
#: By DyNet's name.
TABLE = named(
    scalarInput=(lambda s, device="": _settable(np.full(1, s)), "A number, which may be `set`."),
    vecInput=(lambda dim, device="": _settable(np.zeros(integer("vecInput", dim, 1))), "Zeros, which are to be `set`."),
    inputVector=(_vector, "A vector, which may be `set`."),
    inputTensor=(_tensor, "An array, which may be `set`; `batched`: the last axis is of a mini-batch, which may not."),
    sparse_inputTensor=(_sparse_tensor, "`defval` but for some entries, whose numbers `idxs` lists axis by axis."),
    zeroes=(_ZEROS, "Zeros."),
    zeros=(_ZEROS, "Zeros."),
    ones=(_constants(eb.ones, np.ones), "Ones."),
    constant=(_constant, "The same number everywhere."),
    lookup=(_lookup, "A row of a table; with `update=False` no gradient reaches it."),
    lookup_batch=(lambda p, indices, update=True: p.batch(indices, update), "Rows of a table, as a mini-batch."),
    parameter=(_parameter, "The parameter itself, of several a tuple: they are expressions."),
    random_normal=(_normal, "Gaussian numbers."),
    random_bernoulli=(_bernoulli, "`scale` with probability p, else 0."),
    random_uniform=(_uniform, "Numbers in [left, right)."),
    random_gumbel=(_gumbel, "Numbers of Gumbel's distribution."),
    dropout=(_dropout, "Each entry 0 with probability p, else divided by 1 - p."),
    dropout_dim=(_dropout_dim, "`dropout` of all entries along an axis together."),
    noise=(_noise, "x plus Gaussian numbers."),
)  # fmt: skip
