"""The reward's ratio |READY| / |TOTAL| of each type, kept up to date while a graph is scheduled.

READY are the frontier nodes of type a; TOTAL is the frontier of G^a: the remaining type-a nodes that wait
for no other type-a node. In the path reading they wait when any path leads from one to the other.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edbatch.policy.frontier import Frontier, Graph


class Blockers(NamedTuple):
    """For each type that repeats on some path, what each node still waits for."""

    row: np.ndarray  # int32[T]: the type's row of `waiting`, or -1 when no path holds the type twice
    waiting: np.ndarray  # int32[rows, n]: operands through which a remaining node of the type is reachable
    total: np.ndarray  # int64[T]: |TOTAL| of each type
    stack: np.ndarray  # int32[n]: scratch


@njit(cache=True)
def repeating_types(
    types: np.ndarray, indptr: np.ndarray, operands: np.ndarray, order: np.ndarray, type_count: int
) -> np.ndarray:
    """bool[T]: the types that occur more than once on some path."""
    words = (type_count + 63) // 64
    above = np.zeros((len(types), words), np.uint64)  # bit set of the types of a node and its ancestors
    repeats = np.zeros(type_count, np.bool_)
    one = np.uint64(1)
    for node in order:
        for edge in range(indptr[node], indptr[node + 1]):
            for word in range(words):
                above[node, word] |= above[operands[edge], word]
        kind = types[node]
        bit = one << np.uint64(kind & 63)
        if above[node, kind >> 6] & bit:
            repeats[kind] = True
        above[node, kind >> 6] |= bit
    return repeats


@njit(cache=True)
def new_blockers(
    types: np.ndarray,
    indptr: np.ndarray,
    operands: np.ndarray,
    order: np.ndarray,
    type_count: int,
) -> Blockers:
    """The path ratios of a graph of which nothing has run; O(repeating types * edges)."""
    repeats = repeating_types(types, indptr, operands, order, type_count)
    row = np.full(type_count, -1, np.int32)
    rows = 0
    for kind in range(type_count):
        if repeats[kind]:
            row[kind] = rows
            rows += 1
    waiting = np.zeros((rows, len(types)), np.int32)
    total = np.zeros(type_count, np.int64)
    for kind in range(type_count):
        if row[kind] >= 0:
            here = waiting[row[kind]]
            for node in order:
                blocked = 0
                for edge in range(indptr[node], indptr[node + 1]):
                    operand = operands[edge]
                    if here[operand] > 0 or types[operand] == kind:
                        blocked += 1
                here[node] = blocked
    for node in range(len(types)):
        kind = types[node]
        if row[kind] < 0 or waiting[row[kind], node] == 0:
            total[kind] += 1
    return Blockers(row, waiting, total, np.empty(len(types), np.int32))


@njit(cache=True)
def no_blockers() -> Blockers:
    """A placeholder where no ratio is needed."""
    none = np.empty(0, np.int32)
    return Blockers(none, np.empty((0, 0), np.int32), np.empty(0, np.int64), none)


@njit(cache=True)
def unblock(graph: Graph, frontier: Frontier, blockers: Blockers, kind: int) -> None:
    """Take the coming batch of type `kind` into account; to be called just before `run_batch`.

    Only counts of this type fall; one that reaches 0 propagates until the next node of the type.
    """
    first, last = frontier.begin[kind], frontier.end[kind]
    blockers.total[kind] -= last - first
    if blockers.row[kind] < 0:
        return
    waiting = blockers.waiting[blockers.row[kind]]
    stack = blockers.stack
    for position in range(first, last):
        stack[0] = frontier.pool[position]
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            for edge in range(graph.user_indptr[node], graph.user_indptr[node + 1]):
                user = graph.users[edge]
                waiting[user] -= 1
                if waiting[user] == 0:
                    if graph.types[user] == kind:
                        blockers.total[kind] += 1
                    else:
                        stack[height] = user
                        height += 1


@njit(cache=True)
def best_ratio(frontier: Frontier, blockers: Blockers, kinds: np.ndarray, count: int) -> int:
    """The type with the largest ratio among kinds[:count]; ties go to the larger batch, then the first."""
    best, best_ready, best_total = -1, 0, 1
    for index in range(count):
        kind = kinds[index]
        ready = frontier.end[kind] - frontier.begin[kind]
        total = blockers.total[kind]
        ahead = ready * best_total - best_ready * total
        if ahead == 0:
            ahead = ready - best_ready
        if ahead == 0:
            ahead = best - kind
        if ahead > 0:
            best, best_ready, best_total = kind, ready, total
    return best


@njit(cache=True)
def new_direct_blockers(
    types: np.ndarray, indptr: np.ndarray, operands: np.ndarray, type_count: int
) -> tuple[np.ndarray, np.ndarray]:
    """(waiting int32[n], total int64[T]) where only operands of the node's own type block it."""
    waiting = np.zeros(len(types), np.int32)
    total = np.zeros(type_count, np.int64)
    for node in range(len(types)):
        for edge in range(indptr[node], indptr[node + 1]):
            if types[operands[edge]] == types[node]:
                waiting[node] += 1
        if waiting[node] == 0:
            total[types[node]] += 1
    return waiting, total


@njit(cache=True)
def unblock_direct(graph: Graph, frontier: Frontier, waiting: np.ndarray, total: np.ndarray, kind: int) -> None:
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
