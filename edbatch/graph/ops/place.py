"""Ops that put operands side by side: they move data and compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Op, Sample, declare, expect
from edbatch.graph.op_callers import P, called_as
from edbatch.graph.operand import Operand
from edbatch.graph.ops.shape import checked_axis, reshape, split
from edbatch.graph.record import entries_of, graph_of, to_node, to_operands
from edbatch.graph.recorder import PLACE, caller
from edbatch.graph.spec import Shape


def _concatenate_shape(*shapes: Shape, axis: int) -> Shape:
    first = shapes[0]
    for at, shape in enumerate(shapes):
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise EdBatchError(f"operand {at} has shape {shape}; expected {first} except on axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _concatenate_places(out: Any, shapes: Sequence[Shape], axis: int) -> list[Any]:
    ends = accumulate(shape[axis] for shape in shapes)
    lead = (slice(None),) * (axis + 1)
    return [out[(*lead, slice(end - shape[axis], end))] for end, shape in zip(ends, shapes, strict=True)]


def _stack_shape(*shapes: Shape, axis: int) -> Shape:
    expect(len(set(shapes)) == 1, "expected operands of one shape")
    return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


CONCATENATE = declare(
    Op(
        "concatenate",
        _concatenate_shape,
        places=_concatenate_places,
        gradient=lambda g, out, *operands, axis: split(g, [x.shape[axis] for x in operands], axis),
        samples=(
            Sample(((2,), (3,), (1,)), {"axis": 0}),
            Sample(((2, 3), (2, 1)), {"axis": 1}),
            Sample(((2, 3), (1, 3)), {"axis": 0}),
        ),
    )
)
STACK = declare(
    Op(
        "stack",
        _stack_shape,
        places=lambda out, shapes, axis: [out[(slice(None),) * (axis + 1) + (i,)] for i in range(len(shapes))],
        gradient=lambda g, out, *xs, axis: [g[(slice(None),) * axis + (i,)] for i in range(len(xs))],
        samples=(Sample(((), (), ()), {"axis": 0}), Sample(((3,), (3,)), {"axis": 1})),
    )
)


def _placed(op: Op, new_axes: int) -> Callable[[Callable[P, Any]], Callable[P, Expression]]:
    """Make the caller of an op that puts operands side by side of a function, whose docstring it has."""

    def slow(xs: Iterable[Any], axis: int = 0) -> Expression:
        is_one = isinstance(xs, Operand) and not isinstance(xs, ExpressionArray)
        given = [] if is_one else entries_of(xs)
        if not given or xs is given[0]:
            raise EdBatchError(f"{op.name}: expected a list of at least one expression, got {shown(xs)}")
        graph = graph_of(op.name, given)
        nodes = [to_node(graph, x) for x in to_operands(op, graph, given)]
        if op is CONCATENATE and any(not x.shape for x in nodes):  # a number is a vector of one entry
            return call([x if x.shape else reshape(x, 1) for x in nodes], axis)
        axes = ("axis", checked_axis(op.name, nodes[0].spec, axis, new_axes))
        type = node_type(op, (axes,), tuple([x.spec for x in nodes]))
        if axis.__class__ is int and all(isinstance(x, Expression) for x in given):
            call.learn(type.operands, type.id, type.out, (axis,))
        return graph.add(type, [x.id for x in nodes])

    slow.__qualname__ = op.name  # for Python's errors
    call: Any = caller(PLACE, slow, ("xs", "axis"), defaults=(0,))
    return called_as(call)


@_placed(CONCATENATE, 0)
def concatenate(xs: Sequence[Any], axis: int = 0) -> Any:
    """Expressions one after the other along an axis.

    Args:
        xs: at least one expression or parameter, of equal shapes except on `axis`; scalars count as vectors of one
            entry.
        axis: of one sample's value.

    Raises:
        EdBatchError: an empty list, or shapes that do not fit; the operand is named.

    Example: eb.concatenate([eb.input([1.0, 2.0]), eb.input([3.0])]) -> [1. 2. 3.]
    """


@_placed(STACK, 1)
def stack(xs: Sequence[Any], axis: int = 0) -> Any:
    """Expressions of one shape side by side along a new axis.

    Example: eb.stack([eb.input([1.0, 2.0]), eb.input([3.0, 4.0])]) -> [[1. 2.] [3. 4.]]
    """
