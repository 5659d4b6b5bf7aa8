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
    direct: np.ndarray  # bool[T]: its nodes wait for operands of their own type alone; all these types share a row
    waiting: np.ndarray  # int32[rows, n]: operands through which a remaining node of the type is reachable
    total: np.ndarray  # int64[T]: |TOTAL| when pool[first:seen] had run
    seen: np.ndarray  # int32[T]: a position in the pool; -1 where the row of `waiting` is not filled
    stack: np.ndarray  # int32[n]: scratch


@compiled(small=True)
def repeating_types(graph: GraphColumns, type_count: int) -> tuple[np.ndarray, np.ndarray]:
    """bool[T]: the types that occur more than once on some path; bool[T]: those of them between whose nodes there are
    only paths of this type, as in a chain of states or in a tree."""
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    words = (type_count + 63) // 64
    above = np.zeros((len(types), words), np.uint64)  # bit set of the types of a node and its ancestors
    repeats, through_others = np.zeros(type_count, np.bool_), np.zeros(type_count, np.bool_)
    one = np.uint64(1)
    for node in graph.order:
        kind = types[node]
        bit = one << np.uint64(kind & 63)
        for edge in range(indptr[node], indptr[node + 1]):
            operand = operands[edge]
            for word in range(words):
                above[node, word] |= above[operand, word]
            if types[operand] != kind and above[operand, kind >> 6] & bit:
                through_others[kind] = True
        if above[node, kind >> 6] & bit:
            repeats[kind] = True
        above[node, kind >> 6] |= bit
    return repeats, repeats & ~through_others


@compiled(small=True)
def new_blockers(graph: GraphColumns, frontier: Frontier) -> Blockers:
    """The path ratios of a graph of which nothing has run."""
    nodes, type_count = len(graph.types), len(frontier.begin)
    first = np.full(type_count + 1, nodes, np.int32)
    first[:type_count] = frontier.begin
    repeats, direct = repeating_types(graph, type_count)
    row = np.full(type_count, -1, np.int32)
    rows = 0
    for kind in range(type_count):  # those that are direct share the first row
        if direct[kind]:
            row[kind], rows = 0, 1
    for kind in range(type_count):
        if repeats[kind] and not direct[kind]:
            row[kind] = rows
            rows += 1
    return Blockers(
        first,
        row,
        direct,
        np.empty((rows, nodes), np.int32),
        np.zeros(type_count, np.int64),
        np.full(type_count, -1, np.int32),
        np.empty(nodes, np.int32),
    )


@compiled(small=True)
def no_blockers() -> Blockers:
    """A placeholder where no ratio is needed."""
    none, longs = np.empty(0, np.int32), np.empty(0, np.int64)
    return Blockers(none, none, np.empty(0, np.bool_), np.empty((0, 0), np.int32), longs, none, none)


@compiled(small=True)
def total_of(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kind: int) -> int:
    """|TOTAL| of a type now; amortized O(edges) for each type that repeats on a path."""
    if blockers.row[kind] < 0:
        return int(blockers.first[kind + 1] - frontier.begin[kind])  # all that remain
    if blockers.seen[kind] < 0:
        fill(graph, blockers, kind)
    if blockers.seen[kind] < frontier.begin[kind]:
        unblock(graph, frontier, blockers, kind)
    return int(blockers.total[kind])


@compiled(small=True)
def fill(graph: GraphColumns, blockers: Blockers, kind: int) -> None:
    """Count what each node waited for when nothing had run; for all types of its row."""
    waiting, types, direct = blockers.waiting[blockers.row[kind]], graph.types, blockers.direct
    of_row = direct if direct[kind] else np.arange(len(direct)) == kind
    blockers.total[of_row] = 0
    for node in graph.order:
        own = types[node]
        if direct[kind] and not direct[own]:
            continue
        blocked = 0
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            operand = graph.operands[edge]
            if direct[kind]:
                blocked += types[operand] == own
            else:
                blocked += types[operand] == kind or waiting[operand] > 0
        waiting[node] = blocked
        if blocked == 0 and of_row[own]:
            blockers.total[own] += 1
    blockers.seen[of_row] = blockers.first[:-1][of_row]


# It goes over all nodes: Numba counts the references to every array of a record when a function is called with it,
# which for every node takes longer than the rest.
@compiled(small=True)
def unblock(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kind: int) -> None:
    """Take into account which nodes of type `kind` have run.

    Only counts of this type fall; one that reaches 0 propagates until the next node of the type.
    """
    waiting, stack, direct = blockers.waiting[blockers.row[kind]], blockers.stack, blockers.direct[kind]
    types, user_indptr, users = graph.types, graph.user_indptr, graph.users
    first, last = blockers.seen[kind], frontier.begin[kind]
    total = blockers.total[kind] - (last - first)
    for node in frontier.pool[first:last]:
        stack[0] = node
        height = 1
        while height > 0:
            height -= 1
            above = stack[height]
            for edge in range(user_indptr[above], user_indptr[above + 1]):
                user = users[edge]
                if direct and types[user] != kind:
                    continue
                waiting[user] -= 1
                if waiting[user] == 0:
                    if types[user] == kind:
                        total += 1
                    else:
                        stack[height] = user
                        height += 1
    blockers.total[kind] = total
    blockers.seen[kind] = last


@compiled(small=True)
def best_ratio(graph: GraphColumns, frontier: Frontier, blockers: Blockers, kinds: np.ndarray, count: int) -> int:
    """The type with the largest ratio among kinds[:count]; ties go to the larger batch, then the first."""
    if count == 1:
        return int(kinds[0])
    best, best_ready, best_total = -1, 0, 1
    for index in range(count):
        kind = kinds[index]
        ready = frontier.end[kind] - frontier.begin[kind]
        if best_ready == best_total and (ready < best_ready or (ready == best_ready and kind > best)):
            continue  # no ratio is above 1
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
