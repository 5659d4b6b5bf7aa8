"""What a type computes, as the body of a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from edbatch.graph.cell.body import Body, Node, Value, spec_of_value, step_to
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.passes import body_over_lists, prepare_for_kernels
from edbatch.graph.cell.trace import argument_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import ParameterSpec, Spec
from edbatch.graph.views import NODE_BITS, steps_of


def body_of_type(type: NodeType) -> tuple[Body, Spec, list[int]]:
    """What a type computes, the row of its result, and the steps to each output; a primitive is a body of one node.

    That of an op over lists reads a value for each element of a list.
    """
    if isinstance(type.op, CellOp):
        body = type.op.body
        returned = [spec_of_value(body, value) for value in body.outputs]
        return body, type.out, [step_to(type.out, *at) for at in zip(type.op.columns, returned, strict=True)]
    if type.body is not None:
        return type.body, type.out, [0]
    if type.lists:
        body = type.body = prepare_for_kernels(body_over_lists(type), named=True)
        return body, type.out, [0]
    specs = tuple([operand for operand in type.operands if not isinstance(operand, ParameterSpec)])
    arguments = [Node(argument_type(at, spec), ()) for at, spec in enumerate(specs)]
    node = Node(type, tuple(map(Value, range(len(specs)))), tuple([-1 - at for at in range(type.op.payload)]))
    body = Body(specs, (*arguments, node), (Value(len(specs)),), type.op.payload)
    if type.op.composite is not None:
        body = type.body = prepare_for_kernels(body, named=True)
    return body, type.out, [0]


def outputs_seen(type: NodeType, code: int) -> list[int]:
    """Which outputs of a type view `code` shows, or shows a part of."""
    roots = [steps_of(step >> NODE_BITS) for step in body_of_type(type)[2]]
    return [k for k, root in enumerate(roots) if steps_of(code)[: len(root)] == root]


def columns_of_type(type: NodeType) -> tuple[int, ...]:
    """Per output of the body, where it begins in a row of the result."""
    return type.op.columns if isinstance(type.op, CellOp) else (0,)


def places_of(type: NodeType) -> Callable[[Any], list[Any]] | None:
    """The function from a result to the parts that the operands go to; None if the op computes."""
    places = type.op.places
    if places is None:
        return None
    return partial(places, shapes=[operand.shape for operand in type.operands], **dict(type.attributes))
