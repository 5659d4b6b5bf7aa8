"""What enters the graph: arrays, numbers that may be set anew, constants, parameters and rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer, named, number
from edbatch.dynet.draws import filled
from edbatch.dynet.expression import one_or_batch
from edbatch.dynet.implicit import DynetTypeError, implicit
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.errors import EdBatchError, shown
from edbatch.graph.record import array_input


def _settable(value: np.ndarray) -> Any:
    graph: Any = implicit.recorded_into()
    made = array_input(graph, value)
    if graph is not implicit.graph:
        return made
    implicit.settable[made.id] = graph.inputs[-1]
    return graph.handle.of_inputs(graph, made.id, made.spec)


def _vector(v: Any, device: str = "") -> Any:
    found = np.asarray(v if hasattr(v, "__len__") else list(v))
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        raise DynetTypeError(f"inputVector: expected a list of numbers, got {shown(v)}")
    return _settable(found)


def _tensor(arr: Any, batched: bool = False, device: str = "", reusable_expr: bool = False) -> Any:
    found = np.asarray(arr)
    if not found.ndim or found.dtype.kind not in "fiub":
        raise DynetTypeError("Input Tensor should be a numpy.ndarray or a valid list of floats")
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
    places = tuple(np.asarray([integer("sparse_inputTensor: idxs", at) for at in axis], np.int64) for axis in idxs)
    found = [len(axis) for axis in places]
    if found != [len(values)] * dense.ndim:
        raise EdBatchError(f"sparse_inputTensor: expected {len(values)} indices for {dense.ndim} axes, got {found}")
    dense[places] = values
    return _tensor(dense, batched)


def _constants(of_graph: Callable[..., Any], of_batch: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a shape: EdBatch's constant, or a mini-batch of NumPy's."""

    def constants(dim: Any, batch_size: int = 1) -> Any:
        if batch_size > 1:
            return filled(dim, batch_size, of_batch)
        implicit.recorded_into()
        return of_graph(dim)

    return constants


def _lookup(p: LookupParameters, index: int = 0, update: bool = True) -> Any:
    found = p[index]
    return found if update else eb.stop_gradient(found)


def _parameter(*parameters: Any) -> Any:
    for one in parameters:
        if not isinstance(one, Parameters | LookupParameters):
            raise EdBatchError(f"Only Parameters and LookupParameters are accepted, got {type(one).__name__}")
    found = tuple(x.expr() for x in parameters)
    return found[0] if len(found) == 1 else found


_ZEROS = _constants(eb.zeros, np.zeros)
#: By DyNet's name.
TABLE = named(
    scalarInput=(
        lambda s, device="": _settable(np.full(1, number("scalarInput: s", s))), "A number, which may be `set`."
    ),
    vecInput=(
        lambda dim, device="": _settable(np.zeros(integer("vecInput: dim", dim, 1))),
        "A vector of zeros, which is to be `set`.",
    ),
    inputVector=(_vector, "A vector, which may be `set`."),
    inputTensor=(
        _tensor,
        "An array, which may be `set`; `batched`: the last axis is of a mini-batch, which may not.",
    ),
    sparse_inputTensor=(
        _sparse_tensor,
        "An array that is `defval` but for some entries, whose numbers `idxs` lists axis by axis.",
    ),
    zeroes=(_ZEROS, "Zeros."),
    zeros=(_ZEROS, "Zeros."),
    ones=(_constants(eb.ones, np.ones), "Ones."),
    constant=(
        lambda dim, val, batch_size=1: filled(dim, batch_size, lambda shape: np.full(shape, val)),
        "The same number everywhere.",
    ),
    lookup=(_lookup, "A row of a table; with `update=False` no gradient reaches it."),
    lookup_batch=(
        lambda p, indices, update=True: p.batch(indices, update),
        "Rows of a table, as a mini-batch.",
    ),
    parameter=(_parameter, "The parameter itself, of several a tuple: they are expressions."),
)  # fmt: skip
