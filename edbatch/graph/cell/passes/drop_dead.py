"""Pass: without nodes that no output needs."""

from __future__ import annotations

from edbatch.graph.cell.body import Body, with_nodes
from edbatch.graph.cell.trace import ARGUMENT


def drop_dead(body: Body) -> Body:
    """Drop what no output needs; arguments stay."""
    alive = [node.type.op is ARGUMENT for node in body.nodes]
    for value in body.outputs:
        alive[value.node] = True
    for number in range(len(body.nodes) - 1, -1, -1):
        if alive[number]:
            for value in body.nodes[number].operands:
                alive[value.node] = True
    return with_nodes(body, [number for number, keep in enumerate(alive) if keep])
