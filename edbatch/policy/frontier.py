"""The ready nodes of a graph, by type: Frontier(G) of the paper, compiled.

Ready nodes are appended to their type's slice of one array, so a whole schedule costs O(nodes + edges).
"""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
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
    types, indptr = graph.types, graph.indptr
    nodes = len(types)
    begin = np.zeros(type_count + 1, np.int32)
    for node in range(nodes):
        begin[types[node] + 1] += 1
    for kind in range(type_count):
        begin[kind + 1] += begin[kind]
    end = begin[:type_count].copy()
    missing = np.empty(nodes, np.int32)
    pool = np.empty(nodes, np.int32)
    for node in range(nodes):
        missing[node] = indptr[node + 1] - indptr[node]
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


@compiled(small=True)
def run_batch(graph: GraphColumns, frontier: Frontier, record: Record, kind: int) -> None:
    """Run every ready node of type `kind`: one iteration of Algorithm 1."""
    first, last = frontier.begin[kind], frontier.end[kind]
    frontier.begin[kind] = last
    batch = record.length[0]
    done = record.offsets[batch]
    for position in range(first, last):
        node = frontier.pool[position]
        record.order[done] = node
        done += 1
        for edge in range(graph.user_indptr[node], graph.user_indptr[node + 1]):
            user = graph.users[edge]
            frontier.missing[user] -= 1
            if frontier.missing[user] == 0:
                end = frontier.end[graph.types[user]]
                frontier.pool[end] = user
                frontier.end[graph.types[user]] = end + 1
    record.types[batch] = kind
    record.offsets[batch + 1] = done
    record.length[0] = batch + 1


@compiled(small=True)
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
