"""The reward's ratio |READY| / |TOTAL| of each type, kept up to date while a graph is scheduled.

READY are the frontier nodes of type a; TOTAL is the frontier of G^a: the remaining type-a nodes that wait for no other
type-a node, on any path.
"""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.frontier import Frontier
from edbatch.policy.topology import repeating_types
from edbatch.policy.typed_graph import GraphColumns


class Blockers(NamedTuple):
    """For each type that repeats on some path, what each node waits for; of the others, TOTAL is all that remain."""

    row: np.ndarray  # int32[T]: the type's row of `waiting`, or -1 when no path holds the type twice
    waiting: np.ndarray  # int32[rows, n]: operands through which a remaining node of the type is reachable
    total: np.ndarray  # int64[T]: |TOTAL| of the types that have a row
    stack: np.ndarray  # int32[n]: scratch


@compiled(small=True)
def new_blockers(graph: GraphColumns, type_count: int) -> Blockers:
    """The ratios of a graph of which nothing has run; O(rows * edges)."""
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    repeats = repeating_types(types, indptr, operands, graph.order, type_count)
    row = np.where(repeats, np.cumsum(repeats) - 1, -1).astype(np.int32)
    waiting, total = np.zeros((repeats.sum(), len(types)), np.int32), np.zeros(type_count, np.int64)
    for kind in range(type_count):
        if row[kind] < 0:
            continue
        counts = waiting[row[kind]]
        for node in graph.order:
            blocked = 0
            for edge in range(indptr[node], indptr[node + 1]):
                blocked += types[operands[edge]] == kind or counts[operands[edge]] > 0
            counts[node] = blocked
            total[kind] += blocked == 0 and types[node] == kind
    return Blockers(row, waiting, total, np.empty(len(types), np.int32))


@compiled(small=True)
def no_blockers() -> Blockers:
    """A placeholder where no ratio is needed."""
    none = np.empty(0, np.int32)
    return Blockers(none, np.empty((0, 0), np.int32), np.empty(0, np.int64), none)


@compiled(small=True)
def unblock(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kind: int) -> None:
    """Take into account that the ready nodes of type `kind` run now.

    Only counts of this type fall; one that reaches 0 propagates until the next node of the type.
    """
    if blockers.row[kind] < 0:
        return
    waiting, stack, types = blockers.waiting[blockers.row[kind]], blockers.stack, graph.types
    begin, end = frontier.begin[kind], frontier.end[kind]
    total = blockers.total[kind] - (end - begin)
    for node in frontier.pool[begin:end]:
        stack[0] = node
        height = 1
        while height > 0:
            height -= 1
            above = stack[height]
            for edge in range(graph.user_indptr[above], graph.user_indptr[above + 1]):
                user = graph.users[edge]
                waiting[user] -= 1
                if waiting[user] == 0:
                    if types[user] == kind:
                        total += 1
                    else:
                        stack[height] = user
                        height += 1
    blockers.total[kind] = total


@compiled(small=True)
def total_of(frontier: Frontier, blockers: Blockers, kind: int) -> int:
    """|TOTAL| of a type now."""
    if blockers.row[kind] < 0:
        return int(frontier.last[kind] - frontier.begin[kind])
    return int(blockers.total[kind])


@compiled(small=True)
def best_ratio(frontier: Frontier, blockers: Blockers, kinds: np.ndarray, count: int) -> int:
    """The type with the largest ratio among kinds[:count]; ties go to the larger batch, then the first."""
    best, best_ready, best_total = -1, 0, 1
    for kind in kinds[:count]:
        ready, total = frontier.end[kind] - frontier.begin[kind], total_of(frontier, blockers, kind)
        ahead = ready * best_total - best_ready * total
        if ahead > 0 or (ahead == 0 and ready > best_ready):
            best, best_ready, best_total = kind, ready, total
    return best
