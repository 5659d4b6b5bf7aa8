"""Passes that each take a few lines: fewer nodes, and simpler ones."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Node, Nodes, Value, ancestors, operands_of, rewritten, with_nodes
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec


def drop_dead(body: Body) -> Body:
    """Drop what no output needs; arguments stay."""
    arguments = [number for number, node in enumerate(body.nodes) if node.type.op is ARGUMENT]
    return with_nodes(body, sorted(ancestors(body, [*arguments, *(value.node for value in body.outputs)])))


def merge_equal(body: Body, named: bool = False) -> Body:
    """Merge nodes of one type with equal operands and payload; what is foreign may do more than it returns.

    Args:
        named: each result keeps a gradient of its own, see `prepare_for_batching`: it is merged with nothing.
    """
    returned = {value.node for value in body.outputs} if named else set()
    seen: dict[Any, Value] = {}

    def change(nodes: Nodes, number: int, node: Node) -> Value | None:
        has_own = number in returned and node.type.op.kind is not Kind.VIEW
        if has_own or node.value is not None or node.type.op.call is not None:
            return None
        key = node.type, node.operands, node.payload
        if key not in seen:
            seen[key] = nodes.add(node)
        return seen[key]

    return rewritten(body, change)


def parameters_as_values(body: Body) -> Body:
    """Make nodes of the vectors that element-wise ops read as parameters, one of each."""
    if all(len(node.operands) == len(node.type.operands) for node in body.nodes if node.type.op.elementwise):
        return body
    made: dict[ParameterSpec, Value] = {}

    def change(nodes: Nodes, _: int, node: Node) -> Value | None:
        operands = list(operands_of(node))
        for at, operand in enumerate(operands):
            if isinstance(operand, ParameterSpec) and _is_of_its_shape(node, operand):
                if operand not in made:
                    made[operand] = nodes.parameter(operand, node.cuts)
                operands[at] = made[operand]
        if operands == list(operands_of(node)):
            return None
        return nodes.made(node.type.op, operands, node.type.attributes, node.payload, node.cuts)

    return rewritten(body, change)


def _is_of_its_shape(node: Node, operand: ParameterSpec) -> bool:
    """Whether the result of an element-wise op is a vector like the operand."""
    return node.type.op.elementwise and len(operand.shape) == 1 and operand.shape == node.type.out.shape
