"""Passes that each take a few lines: fewer nodes, and simpler ones."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Node, Nodes, Value, ancestors, rewritten, with_nodes
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import Kind


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
