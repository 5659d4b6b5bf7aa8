"""Entries by their number along an axis: where the largest is, and what an index says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, Place, shown
from edbatch.graph.cell.trace import Payload
from edbatch.graph.columns import Columns, current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import counted, is_integers
from edbatch.graph.model.exchange import UNREADABLE, refuse_masked
from edbatch.graph.op import Op, Sample, composite, declare, expect, no_gradient
from edbatch.graph.op_callers import Attributes, called_as, recorded
from edbatch.graph.operand import Operand
from edbatch.graph.ops.elementwise import alike, greater, greater_equal, less, where
from edbatch.graph.ops.loss import unpick
from edbatch.graph.ops.reduce import max, min, over_axes, reduced_shape, samples_over_axes
from edbatch.graph.ops.shape import checked_axis, embed, unsqueeze
from edbatch.graph.record import array_input, checked_size, constant_node, graph_of, record, to_operand
from edbatch.graph.sources import ONES
from edbatch.graph.spec import Shape

# A number of an entry is a number like any other: float32 has all integers up to this one.
_MOST_FLOAT32 = 2**24


# The number of the first entry that is not 0, or -1.
first = over_axes(
    declare(Op("first", reduced_shape, reduction="first", gradient=no_gradient, samples=samples_over_axes()))
)


def told_apart(place: Any, dtype: np.dtype, size: int) -> None:
    """Raise an error if numbers of a dtype are too few for so many entries."""
    if size > _MOST_FLOAT32 and dtype == np.float32:
        raise EdBatchError(f"{place}: float32 tells at most {_MOST_FLOAT32:,} entries apart, got {size:,}")


def _number_of(name: str, best: Callable[..., Expression]) -> Callable[[Any], Callable[..., Expression]]:
    """Declare the number of the first entry that is the best."""

    def number_of(x: Any, axes: tuple[int, ...], keepdims: bool) -> Expression:
        return first(alike(x, best(x, axes, keepdims=True)), axes, keepdims)

    op = composite(name, reduced_shape, number_of, samples_over_axes(), flat=True)
    return called_as(over_axes(op, told_apart, several=False))


@_number_of("argmax", max)
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The number of the largest entry along an axis, or among all entries, row by row; as NumPy's.

    Of several that are equal it is the first; NaN counts as the largest. The number is of the dtype of `x`, and an
    index for `gather` and `one_hot`. No gradient flows through it. `keepdims` leaves the axis (or all) in with size 1.

    Raises:
        EdBatchError: there is no such axis, or several are given, or it has more entries than the dtype tells apart.

    Example: eb.argmax(eb.input([[1.0, 3.0, 3.0], [5.0, 2.0, 0.0]]), axis=1) -> [1. 0.]
    """


@_number_of("argmin", min)
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The number of the smallest entry along an axis, or among all; as `argmax`.

    Example: eb.argmin(eb.input([2.0, -1.0, -1.0])) -> 1.0
    """


def _one_hot(index: Any, size: int) -> Expression:
    beyond = unsqueeze(index, -1) - array_input(current_graph(), np.arange(size))
    return greater_equal(beyond, 0) * less(beyond, 1)  # of an index that is rounded down


ONE_HOT = composite(
    "one_hot",
    lambda shape, size: (*shape, size),
    _one_hot,
    (Sample(((),), {"size": 4}), Sample(((3,),), {"size": 5}), Sample(((2, 3),), {"size": 1})),
    flat=True,
)


def _one_hot_of_integers(index: Any, size: int) -> Expression | None:
    if isinstance(index, Operand):
        return None
    if size.__class__ is not int or size < 1:
        size = checked_size("one_hot: size", size)
    graph = current_graph()
    if isinstance(index, Payload | int | np.integer):
        return unpick(constant_node(graph, ONES, (), inner=True), index, size, "one_hot")
    return one_hot(_indices("one_hot", graph, index, size), size)


@recorded(ONE_HOT, otherwise=_one_hot_of_integers)
def one_hot(index: Any, size: int) -> Attributes:
    """Zeros with a 1 at an index, along a new last axis; PyTorch's `one_hot`.

    Args:
        index: an integer (negative counts from the end; no part of the type), an array or a list of integers, or an
            expression, as of `argmax`, rounded down; of what is not in [0, size) all are zeros. For an array of
            expressions, each has its own of `eb.array(eb.one_hot(labels, size))`.
        size: how many entries there are; part of the type.

    Returns:
        [*shape of the index, size], through which no gradient flows.

    Raises:
        EdBatchError: an integer is out of range, or the index is none.

    Example: eb.one_hot([2, 0], 3) -> [[0. 0. 1.] [1. 0. 0.]]
    """
    return {"size": checked_size("one_hot: size", size)}


def _indices(place: Any, graph: Columns, given: Any, size: int) -> Expression:
    """Integers below `size` as an operand, checked, and counted from the beginning."""
    told_apart(place, graph.dtype, size)
    if given.__class__ is not np.ndarray:
        refuse_masked(given, place)
    try:
        found = np.asarray(given)
    except (*UNREADABLE, MemoryError):
        found = np.empty(0)
    if found.dtype.kind not in "iu" or not found.size:
        raise EdBatchError(f"{place}: expected integers or an expression as the index, got {shown(given)}")
    return array_input(graph, counted(place, found, size))


def _chosen_shape(x: Shape, index: Shape, axis: int) -> Shape:
    text = f"expected an index with the axes of the values, none but axis {axis} longer than theirs"
    expect(len(x) == len(index) > 0, text)
    expect(all(few <= size for at, (few, size) in enumerate(zip(index, x, strict=True)) if at != axis), text)
    return index


def _changed_shape(x: Shape, index: Shape, values: Shape, axis: int) -> Shape:
    expect(values == _chosen_shape(x, index, axis), "expected as many values as indices")
    return x


def among_zeros(x: Expression, shape: Shape) -> Expression:
    """In the corner of zeros of a shape."""
    return x if x.shape == shape else embed(x, shape, tuple((0, size, 1) for size in x.shape))


def _added_at_gradient(g: Any, out: Any, index: Any, values: Any, shape_to: Shape, axis: int) -> tuple[Any, Expression]:
    is_there = greater_equal(index, 0) * less(index, shape_to[axis])
    return None, where(is_there, record(GATHER, (g, where(is_there, index, 0)), axis=axis), 0)


# Zeros of a shape with values added where an index says, in their order: the transpose of GATHER.
ADDED_AT = declare(
    Op(
        "added_at",
        lambda index, values, shape_to, axis: _changed_shape(shape_to, index, values, axis),
        gradient=_added_at_gradient,
        samples=(
            Sample(((3,), (3,)), {"shape_to": (5,), "axis": 0}, low=0.0, high=4.9),
            Sample(((2, 4, 2), (2, 4, 2)), {"shape_to": (2, 3, 3), "axis": 1}, low=0.0, high=2.9),
            Sample(((4, 2), (4, 2)), {"shape_to": (3, 2), "axis": 0}, low=0.0, high=2.9),
        ),
    )
)
# How many entries of an index there are up to the last that names an entry of a shape; 0 if none does.
LAST_AT = declare(
    Op(
        "last_at",
        lambda index, shape_to, axis: _changed_shape(shape_to, index, index, axis),
        gradient=no_gradient,
        samples=(
            Sample(((3,),), {"shape_to": (5,), "axis": 0}, low=0.0, high=4.9),
            Sample(((1, 4),), {"shape_to": (2, 3), "axis": 1}, low=0.0, high=2.9),
        ),
    )
)
GATHER = declare(
    Op(
        "gather",
        _chosen_shape,
        picks=True,
        gradient=lambda g, out, x, index, axis: (record(ADDED_AT, (index, g), shape_to=x.shape, axis=axis), None),
        samples=(
            Sample(((5,), (3,)), {"axis": 0}, low=0.0, high=4.9),
            Sample(((3, 4), (2, 4)), {"axis": 0}, low=0.0, high=2.9),
            Sample(((3, 4), (2, 6)), {"axis": 1}, low=0.0, high=3.9),
            Sample(((2, 2, 3), (2, 1, 2)), {"axis": 1}, low=0.0, high=1.9),
        ),
    )
)


def _along(op: Op, x: Any, index: Any, axis: Any) -> Attributes:
    """The attributes of ops of a value, an index and maybe more, along an axis."""
    spec, of_index = x.spec, index.spec
    at = checked_axis(op.name, spec, axis)
    told_apart(f"{op.name}({spec!r})", spec.dtype, spec.shape[at])
    if op is SCATTER and at < len(of_index.shape):  # which counts the entries of the index
        told_apart(f"scatter({spec!r}): index", of_index.dtype, of_index.shape[at])
    return {"axis": at}


def _of_integers(op: Op, call: Callable[..., Expression], x: Any, index: Any, *rest: Any) -> Expression | None:
    """What these make of integers as the index: they become an input."""
    if isinstance(index, Operand):
        return None
    *others, axis = rest
    if isinstance(x, ExpressionArray) and is_integers(index) and len(index) == len(x) > 1:
        raise EdBatchError(
            f"{op.name}({x.spec!r}): an array of {len(x)} integers for as many entries; expected eb.pick of an "
            "integer for each entry, or a list of integers that is the same for all"
        )
    if x.__class__ is Expression:
        graph = x.graph
    else:
        graph = graph_of(op.name, [one for one in (x, *others) if isinstance(one, Operand)])
        x = to_operand(op.name, graph, x)
    size = x.spec.shape[checked_axis(op.name, x.spec, axis)]
    return call(x, _indices(Place(lambda: f"{op.name}({x.spec!r})"), graph, index, size), *rest)


@recorded(GATHER, 2, otherwise=lambda *given: _of_integers(GATHER, gather, *given))  # type: ignore[has-type]
def gather(x: Any, index: Any, axis: int) -> Attributes:
    """Entries by their number along an axis: `out[i, j] = x[i, index[i, j]]` along axis 1; as PyTorch's `gather`.

    With as many entries along all other axes it is NumPy's `take_along_axis`. Several entries of the index may be
    equal; their gradients are added in order.

    Args:
        x: expression or parameter.
        index: with as many axes, none but `axis` longer than that of `x`: integers (negative ones count from the end),
            or an expression, as of `argmax`, rounded down. What an expression names and is not there is NaN.
        axis: of one sample's value.

    Returns:
        Expression of the shape of the index.

    Raises:
        EdBatchError: the shapes do not fit, an integer is out of range, or there is no such axis.

    Example: eb.gather(eb.input([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), [[2, 0], [1, 1]], axis=1) -> [[3. 1.] [5. 5.]]
    """
    return _along(GATHER, x, index, axis)


def _scatter(x: Any, index: Any, values: Any, axis: int) -> Expression:
    last = record(LAST_AT, (index,), shape_to=x.shape, axis=axis)
    named = last[tuple(slice(size if at != axis else None) for at, size in enumerate(index.shape))]
    new = record(GATHER, (values, named - greater(named, 0)), axis=axis)
    return where(last, among_zeros(new, x.shape), x)


_SCATTERED = (
    Sample(((5,), (3,), (3,)), {"axis": 0}, low=0.0, high=4.9),
    Sample(((3, 4), (4, 3), (4, 3)), {"axis": 0}, low=0.0, high=2.9),
    Sample(((2, 3), (2, 4), (2, 4)), {"axis": 1}, low=0.0, high=2.9),
)
SCATTER = composite("scatter", _changed_shape, _scatter, _SCATTERED)
SCATTER_ADD = composite(
    "scatter_add",
    _changed_shape,
    lambda x, index, values, axis: x + record(ADDED_AT, (index, values), shape_to=x.shape, axis=axis),
    _SCATTERED,
)


@recorded(SCATTER, 3, otherwise=lambda *given: _of_integers(SCATTER, scatter, *given))  # type: ignore[has-type]
def scatter(x: Any, index: Any, values: Any, axis: int) -> Attributes:
    """x with other values where an index says: `out[i, index[i, j]] = values[i, j]` along axis 1; PyTorch's `scatter`.

    Of several values for one entry the last along the axis stays, as with NumPy's `put_along_axis`; what stays gets the
    gradient.

    Args:
        x: expression or parameter.
        index: as of `gather`; what an expression names and is not there changes nothing.
        values: of the shape of the index.
        axis: of one sample's value.

    Raises:
        EdBatchError: as `gather`; or there are not as many values as indices.

    Example: eb.scatter(eb.zeros(4), [1, 3], eb.input([5.0, 6.0]), axis=0) -> [0. 5. 0. 6.]
    """
    return _along(SCATTER, x, index, axis)


@recorded(SCATTER_ADD, 3, otherwise=lambda *given: _of_integers(SCATTER_ADD, scatter_add, *given))  # type: ignore[has-type]
def scatter_add(x: Any, index: Any, values: Any, axis: int) -> Attributes:
    """x and what is added to it where an index says: `out[i, index[i, j]] += values[i, j]`; PyTorch's `scatter_add`.

    Arguments and errors are those of `scatter`.

    Example: eb.scatter_add(eb.ones(3), [1, 1], eb.input([5.0, 6.0]), axis=0) -> [ 1. 12. 1.]
    """
    return _along(SCATTER_ADD, x, index, axis)
