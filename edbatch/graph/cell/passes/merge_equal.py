"""Pass: one node for all that compute the same of the same."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Node, Value, rebuilt, with_nodes
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS, Kind


def merge_equal(body: Body, named: bool = False) -> Body:
    """Merge nodes of one type with equal operands and payload.

    Args:
        named: each result keeps a gradient of its own, see `prepare_for_batching`: of what is merged with others, a
            result is a copy, which all read that read the result.
    """
    returned = {value.node for value in body.outputs} if named else set()
    seen: dict[Any, int] = {}
    kept: list[Node] = []
    new: dict[int, int] = {}
    members: dict[int, int] = {}
    copies: dict[int, int] = {}  # of what
    for number, node in enumerate(body.nodes):
        moved = node.moved(new)
        key = (moved.type, moved.operands, moved.payload, None if moved.value is None else number)
        if key not in seen:
            seen[key] = len(kept)
            kept.append(moved)
        first = new[number] = seen[key]
        members[first] = members.get(first, 0) + 1
        is_other = node.type.op.kind is Kind.VIEW or node.type.op is ARGUMENT  # and has its gradient anyway
        if number in returned and not is_other:
            new[number] = len(kept)
            copies[len(kept)] = first
            kept.append(Node(node_type(OPS["scale_gradient"], (("scale", 1.0),), (node.type.out,)), (Value(first),)))
    alone = {copy: of for copy, of in copies.items() if members[of] == 1}
    return with_nodes(rebuilt(body, kept, new), [number for number in range(len(kept)) if number not in alone], alone)
