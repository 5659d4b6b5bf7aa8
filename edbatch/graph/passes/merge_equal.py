"""Pass: one node for all that compute the same of the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edbatch.graph.body import Body, Node


def merge_equal(body: Body) -> Body:
    """Merge nodes of one type with equal operands and payload."""
    seen: dict[Any, int] = {}
    kept: list[Node] = []
    new: dict[int, int] = {}
    for number, node in enumerate(body.nodes):
        moved = replace(node, operands=tuple(value.moved(new) for value in node.operands))
        key = (moved.type, moved.operands, moved.payload, None if moved.value is None else number)
        if key not in seen:
            seen[key] = len(kept)
            kept.append(moved)
        new[number] = seen[key]
    return replace(body, nodes=tuple(kept), outputs=tuple(value.moved(new) for value in body.outputs))
