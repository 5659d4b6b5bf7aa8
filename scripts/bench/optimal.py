"""The fewest batches of a small graph, by branch and bound.

A batch either lowers the bound of what remains (it is critical) or is one above it. So schedules with `extra` batches
above the bound of the whole graph are searched depth first, for 0, 1, 2, ... extra ones: critical types first, of these
the one with most work ahead; a type all of whose remaining nodes are ready is run without a choice. A set of nodes that
have run is not looked at again with as few extra batches to spare.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from edbatch.policy import TypedGraph, lower_bound
from edbatch.policy.critical import Critical, complete, is_critical, new_critical, run_critical_batch, work_ahead
from edbatch.policy.frontier import Frontier, new_frontier, new_record, ready_types
from edbatch.policy.typed_graph import Columns, GraphColumns

FOUND, REFUTED, GIVEN_UP = 1, 0, -1
MOST_EXTRA = 50


class Fewest(NamedTuple):
    """The fewest batches, and whether that is proven; else no schedule has fewer than `batches`."""

    batches: int
    proven: bool


def fewest(graph: TypedGraph, sets: int = 300_000) -> Fewest:
    """The fewest batches of any schedule, looking at so many sets of nodes that have run.

    Example:
        >>> fewest(TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]]))
        Fewest(batches=3, proven=True)
    """
    bound = lower_bound(graph)
    code = np.random.default_rng(0).integers(-(2**62), 2**62, len(graph.types))
    for extra in range(MOST_EXTRA):
        answer = _search(graph.columns(), len(graph.names), extra, code, sets)
        if answer != REFUTED:
            return Fewest(bound + extra, answer == FOUND)
    return Fewest(bound + MOST_EXTRA, False)


@nb.njit
def _search(columns: Columns, type_count: int, extra: int, code: np.ndarray, sets: int) -> int:
    """Whether a schedule has at most so many batches above the bound."""
    graph = GraphColumns(*columns)
    nodes = len(graph.types)
    first = new_frontier(graph, type_count)
    start = new_critical(graph, first)
    depth = nodes + 1
    missing, pool = np.empty((depth, nodes), np.int32), np.empty((depth, nodes), np.int32)
    begin, end = np.empty((depth, type_count), np.int32), np.empty((depth, type_count), np.int32)
    reach = np.empty((depth, *start.reach.shape), np.int32)
    missing[0], pool[0], begin[0], end[0], last = first
    reach[0] = start.reach
    run, signature, spare = np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    spare[0] = extra
    kinds = np.empty((depth, type_count), np.int32)  # that are still to be tried
    costs = np.empty((depth, type_count), np.int32)
    left = np.zeros(depth, np.int32)
    known = {np.int64(0): np.int64(-1)}  # the spare batches with which a set was looked at
    scratch = new_record(nodes)
    at, new = 0, True
    while at >= 0:
        frontier = Frontier(missing[at], pool[at], begin[at], end[at], last)
        if new:
            if run[at] == nodes:
                return FOUND
            if known.get(signature[at], np.int64(-1)) >= spare[at]:
                at, new = at - 1, False
                continue
            known[signature[at]] = spare[at]
            if len(known) > sets:
                return GIVEN_UP
            critical = Critical(start.column, start.depths, reach[at])
            left[at] = _options(frontier, critical, kinds[at], costs[at], spare[at])
        if left[at] == 0:
            at, new = at - 1, False
            continue
        left[at] -= 1
        kind, cost = kinds[at, left[at]], costs[at, left[at]]
        after = at + 1
        missing[after], pool[after], begin[after], end[after], reach[after] = (
            missing[at], pool[at], begin[at], end[at], reach[at],
        )  # fmt: skip
        batch = pool[at, begin[at, kind] : end[at, kind]]
        run[after], spare[after], signature[after] = run[at] + len(batch), spare[at] - cost, signature[at]
        for node in batch:
            signature[after] += code[node]
        scratch.length[0] = 0
        frontier = Frontier(missing[after], pool[after], begin[after], end[after], last)
        run_critical_batch(graph, frontier, scratch, Critical(start.column, start.depths, reach[after]), kind)
        at, new = after, True
    return REFUTED


@nb.njit
def _options(frontier: Frontier, critical: Critical, kinds: np.ndarray, costs: np.ndarray, spare: int) -> int:
    """How many ready types may run with so many extra batches to spare; they are left in `kinds`, the best one last."""
    ready = np.empty(len(kinds), np.int32)
    count = ready_types(frontier, ready)
    forced = complete(frontier, ready, count)
    values = np.empty(count)
    kept = 0
    for index in range(count):
        kind = ready[index]
        cost = 0 if is_critical(critical, frontier, ready, count, kind) else 1
        if cost > spare or (forced >= 0 and index != forced):
            continue
        value = work_ahead(critical, frontier, kind) - 1e9 * cost
        place = kept
        while place > 0 and values[place - 1] > value:
            values[place], kinds[place], costs[place] = values[place - 1], kinds[place - 1], costs[place - 1]
            place -= 1
        values[place], kinds[place], costs[place] = value, kind, cost
        kept += 1
    return kept
