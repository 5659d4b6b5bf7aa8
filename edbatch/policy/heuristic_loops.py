"""The heuristics' scheduling loops, compiled: Algorithm 1 with a fixed rule instead of a learned one."""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import complete, most_ahead, new_critical, not_critical, run_critical_batch
from edbatch.policy.frontier import finished, new_frontier, new_record, ready_types, run_batch
from edbatch.policy.ratio import best_ratio, new_blockers, unblock
from edbatch.policy.typed_graph import Columns, GraphColumns

Made = tuple[np.ndarray, np.ndarray, np.ndarray]  # the arguments of Schedule


@compiled(small=True)
def by_agenda(columns: Columns, depth: np.ndarray, type_count: int) -> Made:
    """The ready type of smallest average depth, over all its nodes."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    kinds = np.empty(type_count, np.int32)
    depth_sum, number = np.zeros(type_count, np.int64), np.zeros(type_count, np.int64)
    for node, kind in enumerate(graph.types):
        depth_sum[kind] += depth[node]
        number[kind] += 1
    while record.offsets[record.length[0]] < len(graph.types):
        best = -1
        for kind in kinds[: ready_types(frontier, kinds)]:
            if best < 0 or depth_sum[kind] * number[best] < depth_sum[best] * number[kind]:
                best = kind
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
    blockers = new_blockers(graph, type_count)
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        kind = best_ratio(frontier, blockers, kinds, ready_types(frontier, kinds))
        unblock(graph, frontier, blockers, kind)
        run_batch(graph, frontier, record, kind)
    return finished(record)
