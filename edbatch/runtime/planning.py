"""From what is pending to batches in the graph's plan: as a policy has scheduled it, or in the order of recording."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, TypeColumns, nodes_in, types_in
from edbatch.memory.plan.planner import extend_plan

FEW = 63  # nodes: as many as a set in an integer may have
Planned = tuple[int, bool]


@compiled(small=True)
def plan_batches(
    order: np.ndarray, offsets: np.ndarray, first: int, n_windows: int, node_tables: np.ndarray,
    type_tables: np.ndarray, plan_tables: np.ndarray, arenas: np.ndarray,
) -> Planned:  # fmt: skip
    """Append batches to a graph's plan, and before them the sources among the pending nodes.

    Args:
        order, offsets: the batches of pending nodes that are no sources, counted from `first`.
        first: the first that is pending.
        n_windows, node_tables, type_tables, plan_tables, arenas: see `planner.extend_plan`.

    Returns:
        How many batches are of sources; whether there is room for all rows in their arenas.
    """
    nodes, is_source = nodes_in(node_tables), types_in(type_tables).is_source
    whole, begins, n_sources = with_sources(order, offsets, nodes.types[first:], is_source)
    whole += np.int32(first)
    return n_sources, extend_plan(whole, begins, first, n_windows, node_tables, type_tables, plan_tables, arenas)


@compiled(small=True)
def plan_few(
    splits: bool, first: int, n_windows: int, node_tables: np.ndarray, type_tables: np.ndarray,
    plan_tables: np.ndarray, arenas: np.ndarray,
) -> Planned:  # fmt: skip
    """The same for at most `FEW` pending nodes in the order of recording, each by itself, if nothing is lost by that.

    Args:
        splits: whether cells may be split.

    Returns:
        The same; -1 for the batches of sources: there may be a schedule of fewer batches, nothing is done.
    """
    order = np.empty(FEW, np.int32)
    n = _in_recorded_order(nodes_in(node_tables), types_in(type_tables), first, splits, order)
    if n < 0:
        return -1, True
    offsets = np.arange(n + 1)
    return plan_batches(order[:n], offsets, first, n_windows, node_tables, type_tables, plan_tables, arenas)


@compiled(small=True)
def _in_recorded_order(nodes: NodeColumns, types: TypeColumns, first: int, splits: bool, order: np.ndarray) -> int:
    """Fill in the nodes from `first` on that are no sources, counted from there, and return how many there are.

    -1 if there may be a schedule of fewer batches: there is none if of each type's nodes each depends on the one before
    it, and of types that may be split there is one node, which never is.
    """
    below = np.empty(FEW, np.int64)  # the nodes that each depends on, as a set
    n = 0
    for v in range(len(nodes.types) - first):
        kind, begin = nodes.types[first + v], nodes.starts[first + v]
        depends = np.int64(0)
        for i in range(begin, begin + nodes.counts[first + v]):
            source = (nodes.args[i] & 0xFFFFFFFF) - first
            if source >= 0:
                depends |= below[source] | (np.int64(1) << source)
        below[v] = depends
        if types.is_source[kind]:
            continue
        for u in range(v - 1, -1, -1):
            if nodes.types[first + u] == kind:
                if (splits and types.may_split[kind]) or not (depends >> u) & 1:
                    return -1
                break
        order[n] = v
        n += 1
    return n


@compiled(small=True)
def with_sources(
    order: np.ndarray, offsets: np.ndarray, types: np.ndarray, is_source: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """A schedule with the sources before it, in a batch for each type, in the order in which the graph has them.

    Args:
        order, offsets: the batches of nodes that are no sources.

    Returns:
        All nodes batch after batch; where batches begin; the number of batches of sources.
    """
    n = 0
    for node in range(len(types)):
        n += is_source[types[node]]
    if n == 0:  # as where a graph goes on
        return order.copy(), offsets.copy(), 0
    counts = np.zeros(len(is_source), np.int64)
    present = np.empty(len(is_source), np.int32)
    n_sources = 0
    for node in range(len(types)):
        kind = types[node]
        if is_source[kind]:
            if counts[kind] == 0:
                present[n_sources] = kind
                n_sources += 1
            counts[kind] += 1
    whole = np.empty(n + len(order), np.int32)
    begins = np.zeros(n_sources + len(offsets), np.int64)
    next_of = np.zeros(len(is_source), np.int64)
    for batch in range(n_sources):
        kind = present[batch]
        next_of[kind] = begins[batch]
        begins[batch + 1] = begins[batch] + counts[kind]
    for node in range(len(types)):
        kind = types[node]
        if is_source[kind]:
            whole[next_of[kind]] = node
            next_of[kind] += 1
    whole[n:] = order
    begins[n_sources:] = offsets + n
    return whole, begins, n_sources
