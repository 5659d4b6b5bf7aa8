"""The reward's ratio |READY| / |TOTAL| of each type, found on demand while a graph is scheduled.

READY are the frontier nodes of type a; TOTAL is the frontier of G^a: the remaining type-a nodes that wait
for no other type-a node. In the path reading they wait when any path leads from one to the other.
"""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.frontier import Frontier
from edbatch.policy.typed_graph import GraphColumns


class Blockers(NamedTuple):
    """For each type that repeats on some path, what each node waits for.

    A type costs nothing until somebody asks for its TOTAL: `seen` says how far its counts have come.
    """

    first: np.ndarray  # int32[T + 1]: where each type's slice of the frontier's pool starts
    row: np.ndarray  # int32[T]: the type's row of `waiting`, or -1 when no path holds the type twice
    waiting: np.ndarray  # int32[rows, n]: operands through which a remaining node of the type is reachable
    total: np.ndarray  # int64[T]: |TOTAL| when pool[first:seen] had run
    seen: np.ndarray  # int32[T]: a position in the pool; -1 where the row of `waiting` is not filled
    stack: np.ndarray  # int32[n]: scratch


@compiled(small=True)
def repeating_types(graph: GraphColumns, type_count: int) -> np.ndarray:
    """bool[T]: the types that occur more than once on some path."""
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    words = (type_count + 63) // 64
    above = np.zeros((len(types), words), np.uint64)  # bit set of the types of a node and its ancestors
    repeats = np.zeros(type_count, np.bool_)
    one = np.uint64(1)
    for node in graph.order:
        for edge in range(indptr[node], indptr[node + 1]):
            for word in range(words):
                above[node, word] |= above[operands[edge], word]
        kind = types[node]
        bit = one << np.uint64(kind & 63)
        if above[node, kind >> 6] & bit:
            repeats[kind] = True
        above[node, kind >> 6] |= bit
    return repeats


@compiled(small=True)
def new_blockers(graph: GraphColumns, frontier: Frontier) -> Blockers:
    """The path ratios of a graph of which nothing has run."""
    nodes, type_count = len(graph.types), len(frontier.begin)
    first = np.full(type_count + 1, nodes, np.int32)
    first[:type_count] = frontier.begin
    repeats = repeating_types(graph, type_count)
    row = np.full(type_count, -1, np.int32)
    row[repeats] = np.arange(repeats.sum())
    return Blockers(
        first,
        row,
        np.empty((repeats.sum(), nodes), np.int32),
        np.zeros(type_count, np.int64),
        np.full(type_count, -1, np.int32),
        np.empty(nodes, np.int32),
    )


@compiled(small=True)
def no_blockers() -> Blockers:
    """A placeholder where no ratio is needed."""
    none, longs = np.empty(0, np.int32), np.empty(0, np.int64)
    return Blockers(none, none, np.empty((0, 0), np.int32), longs, none, none)


@compiled(small=True)
def total_of(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kind: int) -> int:
    """|TOTAL| of a type now; amortized O(edges) for each type that repeats on a path."""
    if blockers.row[kind] < 0:
        return int(blockers.first[kind + 1] - frontier.begin[kind])  # all that remain
    if blockers.seen[kind] < 0:
        fill(graph, blockers, kind)
    while blockers.seen[kind] < frontier.begin[kind]:
        unblock(graph, blockers, kind, frontier.pool[blockers.seen[kind]])
        blockers.seen[kind] += 1
    return int(blockers.total[kind])


@compiled(small=True)
def fill(graph: GraphColumns, blockers: Blockers, kind: int) -> None:
    """Count what each node waited for when nothing had run."""
    waiting, types = blockers.waiting[blockers.row[kind]], graph.types
    total = 0
    for node in graph.order:
        blocked = 0
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            operand = graph.operands[edge]
            if waiting[operand] > 0 or types[operand] == kind:
                blocked += 1
        waiting[node] = blocked
        if blocked == 0 and types[node] == kind:
            total += 1
    blockers.total[kind] = total
    blockers.seen[kind] = blockers.first[kind]


@compiled(small=True)
def unblock(graph: GraphColumns, blockers: Blockers, kind: int, node: int) -> None:
    """Take into account that a node of type `kind` has run.

    Only counts of this type fall; one that reaches 0 propagates until the next node of the type.
    """
    waiting, stack = blockers.waiting[blockers.row[kind]], blockers.stack
    blockers.total[kind] -= 1
    stack[0] = node
    height = 1
    while height > 0:
        height -= 1
        above = stack[height]
        for edge in range(graph.user_indptr[above], graph.user_indptr[above + 1]):
            user = graph.users[edge]
            waiting[user] -= 1
            if waiting[user] == 0:
                if graph.types[user] == kind:
                    blockers.total[kind] += 1
                else:
                    stack[height] = user
                    height += 1


@compiled(small=True)
def best_ratio(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kinds: np.ndarray, count: int) -> int:
    """The type with the largest ratio among kinds[:count]; ties go to the larger batch, then the first."""
    if count == 1:
        return int(kinds[0])
    best, best_ready, best_total = -1, 0, 1
    for index in range(count):
        kind = kinds[index]
        ready = frontier.end[kind] - frontier.begin[kind]
        total = total_of(graph, frontier, blockers, kind)
        ahead = ready * best_total - best_ready * total
        if ahead == 0:
            ahead = ready - best_ready
        if ahead == 0:
            ahead = best - kind
        if ahead > 0:
            best, best_ready, best_total = kind, ready, total
    return best


@compiled(small=True)
def new_direct_blockers(graph: GraphColumns, type_count: int) -> tuple[np.ndarray, np.ndarray]:
    """(waiting int32[n], total int64[T]) where only operands of the node's own type block it."""
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    waiting = np.zeros(len(types), np.int32)
    total = np.zeros(type_count, np.int64)
    for node in range(len(types)):
        for edge in range(indptr[node], indptr[node + 1]):
            if types[operands[edge]] == types[node]:
                waiting[node] += 1
        if waiting[node] == 0:
            total[types[node]] += 1
    return waiting, total


@compiled(small=True)
def unblock_direct(graph: GraphColumns, frontier: Frontier, waiting: np.ndarray, total: np.ndarray, kind: int) -> None:
    """The direct reading's `unblock`."""
    first, last = frontier.begin[kind], frontier.end[kind]
    total[kind] -= last - first
    for position in range(first, last):
        node = frontier.pool[position]
        for edge in range(graph.user_indptr[node], graph.user_indptr[node + 1]):
            user = graph.users[edge]
            if graph.types[user] == kind:
                waiting[user] -= 1
                if waiting[user] == 0:
                    total[kind] += 1
