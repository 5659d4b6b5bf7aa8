"""Which nodes gradients flow through: from the root down, as far as something lies below whose gradient is wanted."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled


@compiled(small=True)
def flow(
    order: np.ndarray,
    root: int,
    types: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    args: np.ndarray,
    wanted: np.ndarray,
    stops: np.ndarray,
    view_stops: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Two columns over the nodes: whether its gradient is asked for, and whether one flows into it from the root.

    Args:
        order: the nodes that have run, in an order in which operands precede their users.
        root: where gradients come from.
        types, starts, counts, args: the graph's columns.
        wanted: per type, whether the gradient of its nodes, or of something that they hold, is wanted.
        stops: per type, whether gradients end there: none flows to operands.
        view_stops: per code of a view, whether gradients end there.
    """
    requires = np.zeros(len(types), np.bool_)
    for v in order:
        kind = types[v]
        found = wanted[kind]
        if not stops[kind]:
            for i in range(starts[v], starts[v] + counts[v]):
                found |= requires[args[i] & 0xFFFFFFFF] and not view_stops[args[i] >> 32]
        requires[v] = found
    active = np.zeros(len(types), np.bool_)
    active[root] = requires[root]
    for v in order[::-1]:
        if active[v] and not stops[types[v]]:
            for i in range(starts[v], starts[v] + counts[v]):
                source = args[i] & 0xFFFFFFFF
                if requires[source] and not view_stops[args[i] >> 32]:
                    active[source] = True
    return requires, active


@compiled(small=True)
def per_batch(
    batches: np.ndarray,
    nodes: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    args: np.ndarray,
    active: np.ndarray,
    view_stops: np.ndarray,
    variadic: np.ndarray,
    kinds: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What goes back through each batch.

    Args:
        batches: of a plan; its nodes are consecutive in `nodes`.
        active: per node, whether a gradient flows into it.
        variadic: per type; its operands count as one.
        kinds: number of types.

    Returns:
        per batch, how many of its nodes are active; per type, how many, and into which operands (bits) gradients flow.
    """
    number = np.zeros(len(batches), np.int64)
    rows = np.zeros(kinds, np.int64)
    operands = np.zeros(kinds, np.int64)
    at = 0
    for b in range(len(batches)):
        kind = batches[b, 0]
        for i in range(at, at + batches[b, 2]):
            v = nodes[i]
            if not active[v]:
                continue
            number[b] += 1
            for slot in range(counts[v]):
                operand = args[starts[v] + slot]
                if active[operand & 0xFFFFFFFF] and not view_stops[operand >> 32]:
                    operands[kind] |= 1 << (0 if variadic[kind] else min(slot, 62))
        rows[kind] += number[b]
        at += batches[b, 2]
    return number, rows, operands
