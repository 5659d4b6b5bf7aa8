"""The ready nodes of a graph, by type: Frontier(G) of the paper, compiled.

Ready nodes are appended to their type's slice of one array, so a whole schedule costs O(nodes + edges). The reward's
ratio |READY| / |TOTAL| of a type compares its nodes on the frontier with the frontier of G^a: the remaining nodes of
the type that wait for no other of it, on any path.
"""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.topology import repeating_types
from edbatch.policy.typed_graph import GraphColumns


class Frontier(NamedTuple):
    """What is ready; changed in place by `run_batch`."""

    missing: np.ndarray  # int32[n]: operands not executed yet
    pool: np.ndarray  # int32[n]: nodes that became ready, one slice per type
    begin: np.ndarray  # int32[T]: the ready nodes of type t are pool[begin[t]:end[t]]
    end: np.ndarray  # int32[T]
    last: np.ndarray  # int32[T]: where the slice ends; all of a type that remains is ready when end[t] == last[t]


class Record(NamedTuple):
    """The schedule being written."""

    order: np.ndarray  # int32[n]
    offsets: np.ndarray  # int64[n + 1]
    types: np.ndarray  # int32[n]
    length: np.ndarray  # int64[1]: batches so far


@compiled(small=True)
def new_frontier(graph: GraphColumns, type_count: int) -> Frontier:
    """The frontier of a graph of which nothing has run."""
    types = graph.types
    begin = np.zeros(type_count + 1, np.int32)
    for kind in types:
        begin[kind + 1] += 1
    for kind in range(type_count):
        begin[kind + 1] += begin[kind]
    end = begin[:type_count].copy()
    missing = (graph.indptr[1:] - graph.indptr[:-1]).astype(np.int32)
    pool = np.empty(len(types), np.int32)
    for node in range(len(types)):
        if missing[node] == 0:
            pool[end[types[node]]] = node
            end[types[node]] += 1
    return Frontier(missing, pool, begin[:type_count].copy(), end, begin[1:].copy())


@compiled(small=True)
def new_record(nodes: int) -> Record:
    """Room for the longest schedule of `nodes` nodes."""
    offsets = np.empty(nodes + 1, np.int64)
    offsets[0] = 0
    return Record(np.empty(nodes, np.int32), offsets, np.empty(nodes, np.int32), np.zeros(1, np.int64))


@compiled(small=True, inline="always")
def run_batch(
    graph: GraphColumns, frontier: Frontier, record: Record, kind: int, depths: np.ndarray, reach: np.ndarray
) -> None:
    """Run every ready node of type `kind`: one iteration of Algorithm 1.

    Args:
        depths, reach: see `critical.Critical`; `reach` is kept up to date, unless it has no entries.
    """
    # Taken apart once: Numba counts a reference to an array whenever it is taken out of a record.
    missing, pool, ends, order = frontier.missing, frontier.pool, frontier.end, record.order
    types, user_indptr, users = graph.types, graph.user_indptr, graph.users
    first, last = frontier.begin[kind], ends[kind]
    frontier.begin[kind] = last
    if len(reach):
        reach[kind] = 0
    batch = record.length[0]
    done = record.offsets[batch]
    for at in range(first, last):  # a slice of an array is counted, too
        node = pool[at]
        order[done] = node
        done += 1
        for edge in range(user_indptr[node], user_indptr[node + 1]):
            user = users[edge]
            missing[user] -= 1
            if missing[user] == 0:
                its = types[user]
                pool[ends[its]] = user
                ends[its] += 1
                if len(reach):
                    for column in range(reach.shape[1]):
                        reach[its, column] = max(reach[its, column], depths[user, column])
    record.types[batch] = kind
    record.offsets[batch + 1] = done
    record.length[0] = batch + 1


@compiled(small=True, inline="always")
def ready_types(frontier: Frontier, kinds: np.ndarray) -> int:
    """Fill `kinds` with the types on the frontier, ascending, and return how many there are."""
    count = 0
    for kind in range(len(frontier.begin)):
        if frontier.end[kind] > frontier.begin[kind]:
            kinds[count] = kind
            count += 1
    return count


@compiled(small=True)
def finished(record: Record) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arguments of Schedule."""
    batches = record.length[0]
    return record.order, record.offsets[: batches + 1].copy(), record.types[:batches].copy()


class Blockers(NamedTuple):
    """For each type that repeats on some path, what each node waits for; of the others, TOTAL is all that remain."""

    row: np.ndarray  # int32[T]: the type's row of `waiting`, or -1 when no path holds the type twice
    waiting: np.ndarray  # int32[rows, n]: operands through which a remaining node of the type is reachable
    total: np.ndarray  # int64[T]: |TOTAL| of the types that have a row
    stack: np.ndarray  # int32[n]: scratch


@compiled(small=True)
def new_blockers(graph: GraphColumns, type_count: int, needed: bool) -> Blockers:
    """The ratios of a graph of which nothing has run, if they are needed; O(rows * edges)."""
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    row = np.full(type_count, -1, np.int32)
    if needed:
        row = repeating_types(types, indptr, operands, graph.order, type_count)
    waiting, total = np.zeros(((row >= 0).sum(), len(types)), np.int32), np.zeros(type_count, np.int64)
    for kind in np.flatnonzero(row >= 0):
        counts = waiting[row[kind]]
        for node in graph.order:
            for edge in range(indptr[node], indptr[node + 1]):
                counts[node] += types[operands[edge]] == kind or counts[operands[edge]] > 0
            total[kind] += counts[node] == 0 and types[node] == kind
    return Blockers(row, waiting, total, np.empty(len(types), np.int32))


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
