"""Row order: the rows of a batch are ordered for their consumers, so that later operands become slices."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, span


@compiled(small=True)
def order_rows(
    order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, singles: np.ndarray, lists: np.ndarray, first: int
) -> None:
    """Reorder the nodes inside each batch, in place, by who reads them first.

    Batches are gone through from the last to the first. When a batch's order is fixed, its operands are pushed, last
    one first, on the lists of the batches that produce them; read from the top, a list then names its nodes by
    (earliest consumer batch, operand slot, position). Every edge is pushed and read once: linear time.

    Args:
        order: nodes, batch after batch; reordered within batches.
        offsets: [batches + 1], of the batches in `order`.
        nodes: of the whole graph.
        singles, lists: per type, see `columns.span`.
        first: the first node that takes part.
    """
    types, starts, counts, args = nodes.types, nodes.starts, nodes.counts, nodes.args
    n_batches = len(offsets) - 1
    widest = 0
    for b in range(n_batches):
        widest = max(widest, offsets[b + 1] - offsets[b])
    if widest < 2:  # as in a chain that is run as it was recorded
        return
    batch_of = np.empty(len(types) - first, np.int32)  # nodes are counted from the first here
    edges = 0
    for b in range(n_batches):
        for i in range(offsets[b], offsets[b + 1]):
            batch_of[order[i] - first] = b
            edges += counts[order[i]]
    head = np.full(n_batches, -1, np.int32)
    follow = np.empty(edges, np.int32)
    pushed = np.empty(edges, np.int32)
    placed = np.zeros(len(batch_of), np.uint8)
    top = 0
    sorted_nodes = np.empty(widest, np.int32)
    for b in range(n_batches - 1, -1, -1):
        lo, hi = offsets[b], offsets[b + 1]
        if head[b] >= 0:
            n = 0
            at = head[b]
            while at >= 0:
                node = pushed[at]
                if not placed[node]:
                    placed[node] = 1
                    sorted_nodes[n] = first + node
                    n += 1
                at = follow[at]
            for i in range(lo, hi):
                if not placed[order[i] - first]:
                    sorted_nodes[n] = order[i]
                    n += 1
            for i in range(n):
                order[lo + i] = sorted_nodes[i]
        kind = types[order[lo]]
        before, listed = singles[kind], lists[kind]
        for slot in range((before + listed if listed else counts[order[lo]]) - 1, -1, -1):
            for i in range(hi - 1, lo - 1, -1):
                begin, end = span(starts, counts, order[i], slot, before, listed)
                for j in range(end - 1, begin - 1, -1):
                    producer = (args[j] & 0xFFFFFFFF) - first
                    if producer >= 0:
                        pushed[top] = producer
                        follow[top] = head[batch_of[producer]]
                        head[batch_of[producer]] = top
                        top += 1
