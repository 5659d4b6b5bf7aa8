"""The work ahead of the frontier while a graph is scheduled, and the rule that follows it: see docs/policies.md."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.frontier import Frontier
from edbatch.policy.topology import repeating_types
from edbatch.policy.typed_graph import GraphColumns


class Critical(NamedTuple):
    """What decides which batches are critical: those that lower the bound of what remains.

    Only types that occur more than once on some path need a column: a batch of any other type is critical when all of
    its remaining nodes are ready. The last column is the sum of the others: the work ahead.
    """

    column: np.ndarray  # int32[T]: a type's column of the others, or -1
    depths: np.ndarray  # int32[n, columns + 1]: the most nodes of each type on a path that starts at a node
    reach: np.ndarray  # int32[T, columns + 1]: the largest `depths` of the ready nodes of each type


@compiled(small=True)
def not_critical() -> Critical:
    """A placeholder where nothing looks ahead."""
    return Critical(np.zeros(0, np.int32), np.zeros((0, 0), np.int32), np.zeros((0, 0), np.int32))


NOT_CRITICAL = not_critical.py_func()  # type: ignore[attr-defined]


@compiled(small=True)
def look_ahead(critical: Critical, graph: GraphColumns, frontier: Frontier) -> Critical:
    """The tracker itself or, for the placeholder, that of the graph from a frontier on."""
    return critical if len(critical.column) else new_critical(graph, frontier)


@compiled(small=True)
def new_critical(graph: GraphColumns, frontier: Frontier) -> Critical:
    """The tracker of a graph from a frontier on; O(columns * edges)."""
    types, user_indptr, users = graph.types, graph.user_indptr, graph.users
    type_count = len(frontier.begin)
    column = repeating_types(types, graph.indptr, graph.operands, graph.order, type_count)
    columns = (column >= 0).sum()
    depths = np.zeros((len(types), columns + 1), np.int32)
    for node in graph.order[::-1]:
        row = depths[node]
        for edge in range(user_indptr[node], user_indptr[node + 1]):
            below = depths[users[edge]]
            for other in range(columns):
                row[other] = max(row[other], below[other])
        if column[types[node]] >= 0:
            row[column[types[node]]] += 1
        row[columns] = row[:columns].sum()
    critical = Critical(column, depths, np.zeros((type_count, columns + 1), np.int32))
    raise_reach(critical, frontier, frontier.begin)
    return critical


@compiled(small=True)
def raise_reach(critical: Critical, frontier: Frontier, since: np.ndarray) -> None:
    """Take the nodes into account that are ready, of each type from a position in the pool on."""
    for kind in range(len(critical.reach)):
        reach = critical.reach[kind]
        for node in frontier.pool[since[kind] : frontier.end[kind]]:
            row = critical.depths[node]
            for other in range(len(reach)):
                reach[other] = max(reach[other], row[other])


@compiled(small=True)
def is_critical(critical: Critical, frontier: Frontier, kinds: np.ndarray, count: int, kind: int) -> bool:
    """Whether a batch of type `kind`, of the ready `kinds[:count]`, lowers the bound of what remains (by one).

    It does when every path with the most nodes of that type starts in the batch.
    """
    column, reach = critical.column[kind], critical.reach
    if column < 0:
        return bool(frontier.end[kind] == frontier.last[kind])
    for other in kinds[:count]:  # noqa: SIM110 - Numba compiles the loop, not all(...)
        if other != kind and reach[other, column] >= reach[kind, column]:
            return False
    return True


@compiled(small=True, inline="always")
def complete(frontier: Frontier, kinds: np.ndarray, count: int) -> int:
    """The position in `kinds` of a type that runs without a choice, or -1: of the only one, or of one all of whose
    remaining nodes are ready. Its batch has to run some time, and nothing can join it, so it may as well run now.
    """
    for index in range(count):
        if count == 1 or frontier.end[kinds[index]] == frontier.last[kinds[index]]:
            return index
    return -1


@compiled(small=True)
def work_ahead(critical: Critical, frontier: Frontier, kind: int) -> float:
    """The most work ahead of a ready node of a type, plus the share of its remaining nodes that are ready, below 1."""
    ready = frontier.end[kind] - frontier.begin[kind]
    return float(critical.reach[kind, -1] + ready / (frontier.last[kind] - frontier.begin[kind]))


@compiled(small=True, inline="always")
def most_ahead(critical: Critical, frontier: Frontier, kinds: np.ndarray, count: int) -> int:
    """The rule `critical-path`: the position in `kinds` of the critical type (of all, if none is) with most ahead."""
    best, best_critical, best_work = 0, False, 0.0
    for index in range(count):
        kind = kinds[index]
        now, work = is_critical(critical, frontier, kinds, count, kind), work_ahead(critical, frontier, kind)
        if (now, work, -kind) > (best_critical, best_work, -kinds[best]):
            best, best_critical, best_work = index, now, work
    return best
