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
    for kind in np.flatnonzero(repeats):
        counts = waiting[row[kind]]
        for node in graph.order:
            for edge in range(indptr[node], indptr[node + 1]):
                counts[node] += types[operands[edge]] == kind or counts[operands[edge]] > 0
            total[kind] += counts[node] == 0 and types[node] == kind
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
    waiting, stack = blockers.waiting[blockers.row[kind]], blockers.stack
    for node in frontier.pool[frontier.begin[kind] : frontier.end[kind]]:
        blockers.total[kind] -= 1
        stack[0], height = node, 1
        while height > 0:
            height -= 1
            above = stack[height]
            for edge in range(graph.user_indptr[above], graph.user_indptr[above + 1]):
                user = graph.users[edge]
                waiting[user] -= 1
                if waiting[user] == 0 and graph.types[user] == kind:
                    blockers.total[kind] += 1
                elif waiting[user] == 0:
                    stack[height] = user
                    height += 1


@compiled(small=True)
def total_of(frontier: Frontier, blockers: Blockers, kind: int) -> int:
    """|TOTAL| of a type now."""
    left = int(frontier.last[kind] - frontier.begin[kind])
    return left if blockers.row[kind] < 0 else int(blockers.total[kind])
