"""The heuristics' scheduling loops, compiled: Algorithm 1 with a fixed rule instead of a learned one."""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import (
    complete,
    is_critical,
    most_ahead,
    new_critical,
    not_critical,
    run_critical_batch,
)
from edbatch.policy.frontier import finished, new_frontier, new_record, ready_types, run_batch
from edbatch.policy.ratio import best_ratio, new_blockers, new_direct_blockers, unblock_direct
from edbatch.policy.typed_graph import Columns, GraphColumns

Made = tuple[np.ndarray, np.ndarray, np.ndarray]  # the arguments of Schedule


@compiled(small=True)
def by_agenda(columns: Columns, depth: np.ndarray, type_count: int, only_remaining: bool) -> Made:
    """The ready type of smallest average depth; averages over all nodes or over the remaining ones."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    kinds = np.empty(type_count, np.int32)
    depth_sum, number = np.zeros(type_count, np.int64), np.zeros(type_count, np.int64)
    types = graph.types
    for node in range(len(types)):
        depth_sum[types[node]] += depth[node]
        number[types[node]] += 1
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        best = kinds[0]
        for kind in kinds[1:count]:
            if depth_sum[kind] * number[best] < depth_sum[best] * number[kind]:
                best = kind
        if only_remaining:
            for node in frontier.pool[frontier.begin[best] : frontier.end[best]]:
                depth_sum[best] -= depth[node]
                number[best] -= 1
        run_batch(graph, frontier, record, best)
    return finished(record)


@compiled(small=True)
def by_critical_path(columns: Columns, type_count: int) -> Made:
    """The rule of `critical.most_ahead`; what is ahead is looked at from the first frontier on that leaves a choice."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    critical, looked = not_critical(), False
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        position = complete(frontier, kinds, count) if count > 1 else 0
        if position < 0:
            if not looked:
                critical, looked = new_critical(graph, frontier), True
            position = most_ahead(critical, frontier, kinds, count)
        if looked:
            run_critical_batch(graph, frontier, record, critical, kinds[position])
        else:
            run_batch(graph, frontier, record, kinds[position])
    return finished(record)


@compiled(small=True)
def by_path_ratio(columns: Columns, type_count: int) -> Made:
    """The ready type of largest path ratio."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    blockers = new_blockers(graph, frontier)
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        kind = best_ratio(graph, frontier, blockers, kinds, ready_types(frontier, kinds))
        run_batch(graph, frontier, record, kind)
    return finished(record)


@compiled(small=True)
def by_direct_ratio(columns: Columns, type_count: int) -> Made:
    """The ready type of largest direct ratio; ties go to the larger batch, then the first type."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    waiting, total = new_direct_blockers(graph, type_count)
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        best, best_ready = -1, 0
        for kind in kinds[: ready_types(frontier, kinds)]:
            ready = frontier.end[kind] - frontier.begin[kind]
            ahead = 1 if best < 0 else ready * total[best] - best_ready * total[kind]
            if ahead > 0 or (ahead == 0 and ready > best_ready):
                best, best_ready = kind, ready
        unblock_direct(graph, frontier, waiting, total, best)
        run_batch(graph, frontier, record, best)
    return finished(record)


@compiled(small=True)
def by_bound(columns: Columns, type_count: int) -> Made:
    """A ready type whose batch brings the remaining bound down, or any if none does; the larger batch of
    several, then the first type."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    critical = new_critical(graph, frontier)
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        best, best_critical, best_ready = -1, False, 0
        for kind in kinds[:count]:
            brings_down = is_critical(critical, frontier, kinds, count, kind)
            ready = frontier.end[kind] - frontier.begin[kind]
            if (brings_down, ready) > (best_critical, best_ready):
                best, best_critical, best_ready = kind, brings_down, ready
        run_critical_batch(graph, frontier, record, critical, best)
    return finished(record)
