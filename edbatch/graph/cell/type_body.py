"""What a type computes, as the body of a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from edbatch.graph.cell.body import Body, Node, Nodes, Value, steps_to_outputs
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.passes import body_over_lists, prepare_for_kernels
from edbatch.graph.cell.trace import argument_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, steps_of


def body_of_type(type: NodeType) -> Body:
    """What a type computes; a primitive is a body of one node.

    That of an op over lists reads a value for each element of a list.
    """
    if isinstance(type.op, CellOp):
        return type.op.body
    if type.body is not None:
        found: Body = type.body
        return found
    if type.lists:
        body = type.body = prepare_for_kernels(body_over_lists(type), named=True)._replace(columns=(0,))
        return body
    specs = tuple([operand for operand in type.operands if not isinstance(operand, ParameterSpec)])
    nodes = Nodes(Node(argument_type(at, spec), ()) for at, spec in enumerate(specs))
    integers = tuple([-1 - at for at in range(type.op.payload)])
    result = nodes.of_type(type, map(Value, range(len(specs))), integers)
    body = Body(specs, tuple(nodes), (result,), type.op.payload, (0,))
    if type.op.composite is not None:
        body = type.body = prepare_for_kernels(body, named=True)
    return body


def outputs_seen(type: NodeType, code: int) -> list[int]:
    """Which outputs of a type view `code` shows, or shows a part of."""
    roots = [steps_of(step >> NODE_BITS) for step, _ in steps_to_outputs(body_of_type(type), type.out)]
    return [k for k, root in enumerate(roots) if steps_of(code)[: len(root)] == root]


def places_of(type: NodeType) -> Callable[[Any], list[Any]] | None:
    """The function from a result to the parts that the operands go to; None if the op computes."""
    places = type.op.places
    if places is None:
        return None
    return partial(places, shapes=[operand.shape for operand in type.operands], **dict(type.attributes))
