"""The heuristics' scheduling loops, compiled: Algorithm 1 with a fixed rule instead of a learned one."""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import complete, most_ahead, new_critical, not_critical
from edbatch.policy.frontier import (
    finished,
    new_blockers,
    new_frontier,
    new_record,
    ready_types,
    run_batch,
    total_of,
    unblock,
)
from edbatch.policy.typed_graph import Columns, GraphColumns

Made = tuple[np.ndarray, np.ndarray, np.ndarray]  # the arguments of Schedule


@compiled(small=True)
def by_rank(columns: Columns, rank: np.ndarray) -> Made:
    """The ready type of smallest rank, float64[T]; the first of equals."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, len(rank)), new_record(len(graph.types))
    nothing, kinds = not_critical(), np.empty(len(rank), np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        run_batch(graph, frontier, record, kinds[np.argmin(rank[kinds[:count]])], nothing.depths, nothing.reach)
    return finished(record)


@compiled(small=True)
def by_critical_path(columns: Columns, type_count: int) -> Made:
    """The rule of `critical.most_ahead`; what is ahead is looked at from the first frontier on that leaves a choice."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    nothing, kinds = not_critical(), np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        position = complete(frontier, kinds, ready_types(frontier, kinds))
        if position < 0:
            break
        run_batch(graph, frontier, record, kinds[position], nothing.depths, nothing.reach)
    if record.offsets[record.length[0]] == len(graph.types):
        return finished(record)
    critical = new_critical(graph, frontier)  # not in that loop: each round would count references to its arrays
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        position = complete(frontier, kinds, count)
        if position < 0:
            position = most_ahead(critical, frontier, kinds, count)
        run_batch(graph, frontier, record, kinds[position], critical.depths, critical.reach)
    return finished(record)


@compiled(small=True)
def by_path_ratio(columns: Columns, type_count: int) -> Made:
    """The ready type of largest path ratio; ties go to the larger batch, then the first."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    blockers, nothing = new_blockers(graph, type_count, True), not_critical()
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        best, best_ready, best_total = -1, 0, 1
        for kind in kinds[: ready_types(frontier, kinds)]:
            ready, total = frontier.end[kind] - frontier.begin[kind], total_of(frontier, blockers, kind)
            if (ready * best_total, ready) > (best_ready * total, best_ready):
                best, best_ready, best_total = kind, ready, total
        unblock(graph, frontier, blockers, best)
        run_batch(graph, frontier, record, best, nothing.depths, nothing.reach)
    return finished(record)
