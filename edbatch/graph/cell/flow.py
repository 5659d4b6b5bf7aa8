"""What gradients reach in a body, from a set of its outputs.

An output that nobody reads has no gradient. That is not a gradient of zero: zero times an infinite derivative, as that
of `sqrt` at 0, is not a number. So a derivative goes back from the outputs that gradients flow into, and only from
those. What is reached from them anyway counts as well: the zeros of such an output are added to gradients that are
there without it, and change nothing. That keeps the sets few: who reads h of an LSTM's h and c reaches c.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import no_gradient


def reached(body: Body, outputs: Collection[int]) -> list[np.ndarray]:
    """Per node of a body, bool: whether gradients flow into it.

    Of an argument that is said of each entry (it may be the row of all outputs of another cell), of nodes that were
    merged to one of each of them.

    Args:
        body: of a cell, or of a single op.
        outputs: numbers of those that gradients flow into.
    """
    found = [np.zeros(len(_cuts(node)) + 1, np.bool_) for node in body.nodes]
    for number in outputs:
        value = body.outputs[number]
        if not stops(value.view):
            found[value.node][slice(None) if value.view is None else _parts(body, value)] = True
    for number in range(len(body.nodes) - 1, -1, -1):
        node = body.nodes[number]
        if not some(found[number]) or node.type.op.gradient is no_gradient:
            continue
        entries = None if every(found[number]) else found[number][_parts(body, Value(number))]
        for value in node.operands:
            if not stops(value.view):
                if len(found[value.node]) == 1 or (entries is None and value.view is None):
                    found[value.node][:] = True
                    continue
                if entries is None and value.view and body.nodes[value.node].type.op is ARGUMENT:
                    # Marked where it is: windows that overlap show more entries than can be listed.
                    value.view.look(found[value.node].reshape(1, *value.view.root.shape))[...] = True
                    continue
                shown = _parts(body, value)
                aligned = entries is not None and node.type.op.elementwise and len(shown) == len(entries)
                found[value.node][shown[entries] if aligned else shown] = True
    return found


def some(flags: np.ndarray) -> bool:
    """Whether one of them is true: NumPy takes seven times as long for a few."""
    return 1 in flags.tobytes()


def every(flags: np.ndarray) -> bool:
    """Whether all of them are."""
    return 0 not in flags.tobytes()


def closed(body: Body, outputs: Collection[int]) -> frozenset[int]:
    """The outputs that gradients flow into if they flow into these."""
    found = reached(body, outputs)
    return frozenset(
        number
        for number, value in enumerate(body.outputs)
        if not stops(value.view) and found[value.node][_parts(body, value)].all()
    )


def _parts(body: Body, value: Value) -> np.ndarray:
    """The parts of a node, as `reached` tells them apart, that a value shows: of each entry, or one for all."""
    node = body.nodes[value.node]
    cuts = _cuts(node)
    if not cuts:
        return np.zeros(1, np.int64)
    parts = np.arange(node.type.out.size)
    if node.type.op is not ARGUMENT:  # of which each entry is a part
        parts = np.searchsorted(np.array(cuts), parts, side="right")
    return parts if value.view is None else value.view.look(parts.reshape(1, *node.type.out.shape)).ravel()


def _cuts(node: Node) -> Collection[int]:
    return range(1, node.type.out.size) if node.type.op is ARGUMENT else node.cuts
