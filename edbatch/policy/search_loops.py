"""Beam search over batching sequences, compiled."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, is_critical, new_critical, run_critical_batch
from edbatch.policy.frontier import Frontier, finished, new_frontier, new_record, ready_types, run_batch
from edbatch.policy.typed_graph import Columns, GraphColumns


class Prefixes(NamedTuple):
    """The sequences kept at one step; every column's first axis is `width`."""

    missing: np.ndarray  # int32[width, n], and so on: the prefix's Frontier
    pool: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    reach: np.ndarray  # int32[width, T, columns + 1]: as in Critical
    executed: np.ndarray  # int64[width]: nodes run so far
    signature: np.ndarray  # int64[width]: the sum of their codes
    wasted: np.ndarray  # int64[width]: batches that did not bring the bound down


@compiled
def new_prefixes(width: int, nodes: int, type_count: int, columns: int) -> Prefixes:
    """Room for `width` prefixes."""
    return Prefixes(
        np.empty((width, nodes), np.int32),
        np.empty((width, nodes), np.int32),
        np.empty((width, type_count), np.int32),
        np.empty((width, type_count), np.int32),
        np.empty((width, type_count, columns), np.int32),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
    )


@compiled
def frontier_of(prefixes: Prefixes, index: int, last: np.ndarray) -> Frontier:
    """One prefix's frontier, to be changed in place."""
    return Frontier(prefixes.missing[index], prefixes.pool[index], prefixes.begin[index], prefixes.end[index], last)


@compiled
def copy_prefix(source: Prefixes, index: int, target: Prefixes, place: int) -> None:
    """target[place] = source[index]."""
    target.missing[place] = source.missing[index]
    target.pool[place] = source.pool[index]
    target.begin[place] = source.begin[index]
    target.end[place] = source.end[index]
    target.reach[place] = source.reach[index]
    target.executed[place] = source.executed[index]
    target.signature[place] = source.signature[index]
    target.wasted[place] = source.wasted[index]


@compiled
def rank(
    prefixes: Prefixes, alive: int, start: Critical, last: np.ndarray, code: np.ndarray, score: np.ndarray,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Judge every extension (prefix, ready type): `score`, infinite where the type is not ready, and the
    signature after it, `sums`; both float64/int64[alive * T]."""
    nodes, type_count = len(code), prefixes.begin.shape[1]
    kinds = np.empty(type_count, np.int32)
    score[: alive * type_count] = np.inf
    for index in range(alive):
        frontier = frontier_of(prefixes, index, last)
        critical = Critical(start.column, start.depths, prefixes.reach[index])
        count = ready_types(frontier, kinds)
        for kind in kinds[:count]:
            extension = index * type_count + kind
            batch = frontier.pool[frontier.begin[kind] : frontier.end[kind]]
            sums[extension] = prefixes.signature[index]
            for node in batch:
                sums[extension] += code[node]
            waste = not is_critical(critical, frontier, kinds, count, kind)
            score[extension] = prefixes.wasted[index] + waste + len(batch) / (nodes + 1)


@compiled(nogil=True)
def beam_search(columns: Columns, type_count: int, width: int, code: np.ndarray) -> np.ndarray:
    """int32[batches]: the shortest sequence of types found, keeping the `width` best prefixes at each step.

    The best waste the fewest batches, that is, batches that do not bring the bound of the remaining graph
    down; of equals, those with the smaller last batch (a batch that waits grows).
    `code` (int64[n], random) tells sets of executed nodes apart, so that no two prefixes lead to the same.
    """
    graph = GraphColumns(*columns)
    nodes = len(graph.types)
    first = new_frontier(graph, type_count)
    start = new_critical(graph, first)
    columns_ahead = start.reach.shape[1]
    now = new_prefixes(width, nodes, type_count, columns_ahead)
    after = new_prefixes(width, nodes, type_count, columns_ahead)
    now.missing[0], now.pool[0], now.begin[0], now.end[0], _ = first
    now.reach[0] = start.reach
    score, sums = np.empty(width * type_count), np.empty(width * type_count, np.int64)
    parents, chosen = np.empty((nodes, width), np.int32), np.empty((nodes, width), np.int32)
    scratch = new_record(nodes)  # prefixes are kept as parent pointers instead
    alive, step = 1, 0
    while now.executed[:alive].max() < nodes:
        rank(now, alive, start, first.last, code, score, sums)
        survivors = 0
        for extension in np.argsort(score[: alive * type_count], kind="mergesort"):
            if survivors == width or score[extension] == np.inf:
                break
            if (after.signature[:survivors] == sums[extension]).any():
                continue
            parent, kind = extension // type_count, extension % type_count
            copy_prefix(now, parent, after, survivors)
            after.executed[survivors] += now.end[parent, kind] - now.begin[parent, kind]
            after.signature[survivors] = sums[extension]
            after.wasted[survivors] = np.int64(score[extension])
            scratch.length[0] = 0
            critical = Critical(start.column, start.depths, after.reach[survivors])
            run_critical_batch(graph, frontier_of(after, survivors, first.last), scratch, critical, kind)
            parents[step, survivors], chosen[step, survivors] = parent, kind
            survivors += 1
        now, after = after, now
        alive, step = survivors, step + 1
    sequence = np.empty(step, np.int32)
    place = np.argmax(now.executed[:alive])
    for back in range(step - 1, -1, -1):
        sequence[back] = chosen[back, place]
        place = parents[back, place]
    return sequence


@compiled
def replay(columns: Columns, type_count: int, sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The schedule that runs the given types in turn."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    for kind in sequence:
        run_batch(graph, frontier, record, kind)
    return finished(record)
