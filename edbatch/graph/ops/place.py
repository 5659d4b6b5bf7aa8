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


def _concatenate_gradient(g: Any, out: Any, *operands: Any, axis: int) -> list[Expression]:
    return split(g, [x.shape[axis] for x in operands], axis)


def _stack_gradient(g: Any, out: Any, *operands: Any, axis: int) -> list[Expression]:
    return [g[(slice(None),) * axis + (i,)] for i in range(len(operands))]


CONCATENATE = declare(
    Op(
        "concatenate",
        _concatenate_shape,
        places=_concatenate_places,
        gradient=_concatenate_gradient,
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
        gradient=_stack_gradient,
        samples=(Sample(((), (), ()), {"axis": 0}), Sample(((3,), (3,)), {"axis": 1})),
    )
)


def _placer(op: Op, new_axes: int) -> Callable[[Sequence[Any], int], Expression]:
    """The caller of ops that put operands side by side."""

    def slow(given: Iterable[Any], axis: int) -> Expression:
        is_one = isinstance(given, Operand) and not isinstance(given, ExpressionArray)
        xs = [] if is_one else entries_of(given)
        if not xs or given is xs[0]:
            raise EdBatchError(f"{op.name}: expected a list of at least one expression, got {shown(given)}")
        graph = graph_of(op.name, xs)
        listed = [to_node(graph, x) for x in to_operands(op, graph, xs)]
        if op is CONCATENATE and any(not x.shape for x in listed):  # a number is a vector of one entry
            return call([x if x.shape else reshape(x, 1) for x in listed], axis)
        axes = ("axis", checked_axis(op.name, listed[0].spec, axis, new_axes))
        type = node_type(op, (axes,), tuple([x.spec for x in listed]))
        if axis.__class__ is int and all(isinstance(x, Expression) for x in xs):
            call.learn(type.operands, type.id, type.out, (axis,))
        return graph.add(type, [x.id for x in listed])

    call = caller(PLACE, slow, ("xs", "axis"), defaults=(0,))
    return call


_concatenate_call = _placer(CONCATENATE, 0)
_stack_call = _placer(STACK, 1)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Expression:
    """Expressions one after the other along an axis.

    Args:
        xs: at least one expression or parameter, of equal shapes except on `axis`; scalars count as vectors of one
            entry.
        axis: of one sample's value.

    Raises:
        EdBatchError: an empty list, or shapes that do not fit; the operand is named.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.concatenate([eb.input([1.0, 2.0]), eb.input([3.0])])
        >>> y.value()
        array([1., 2., 3.], dtype=float32)
    """
    return _concatenate_call(xs, axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Expression:
    """Expressions of one shape side by side along a new axis.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.stack([eb.input([1.0, 2.0]), eb.input([3.0, 4.0])])
        >>> y.value()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    return _stack_call(xs, axis)
