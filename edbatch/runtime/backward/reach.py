"""Which nodes gradients flow through: from the root down, as far as something lies below whose gradient is wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, NodeColumns, span
from edbatch.runtime.backward.records import PART

ROW = 1 << 31  # in the place of the code of a view: the row of all outputs, as an operand of a set of the reader's


class SetTables(NamedTuple):
    """The sets of types' outputs that `output_sets.OutputSets` knows.

    Attributes:
        start: per type, the number of its one set, or of the empty one.
        single: per type, whether there is but one: whatever is read, gradients flow into it.
        first: per set, where the type's operands begin in `slots`; -1: gradients flow into all of them.
        slots: whether gradients flow on to the operand.
        keys, unions: a hash table, from a set and what reads of the node (-1: nothing is there) to the set with what is
            read added to it; see `union`. What reads is the code of a view or, of the whole row, ROW + the place
            in `slots`.
    """

    start: np.ndarray
    single: np.ndarray
    first: np.ndarray
    slots: np.ndarray
    keys: np.ndarray
    unions: np.ndarray


@compiled(small=True)
def asked_for(
    order: np.ndarray, columns: Columns, wanted: np.ndarray, stops: np.ndarray, view_stops: np.ndarray
) -> np.ndarray:
    """Per node, whether its gradient is asked for: something lies in it or below whose gradient is wanted.

    Args:
        order: the nodes that have run, in an order in which operands precede their users.
        columns: the `NodeColumns` of the graph.
        wanted: per type, whether the gradient of its nodes, or of something that they hold, is wanted.
        stops: per type, whether gradients end there: none flows to operands.
        view_stops: per code of a view, whether gradients end there.
    """
    types, starts, counts, args = NodeColumns(*columns)
    requires = np.zeros(len(types), np.bool_)
    for v in order:
        kind = types[v]
        found = wanted[kind]
        if not stops[kind]:
            for i in range(starts[v], starts[v] + counts[v]):
                found |= requires[args[i] & 0xFFFFFFFF] and not view_stops[args[i] >> 32]
        requires[v] = found
    return requires


@compiled(small=True)
def flow(
    order: np.ndarray, last: int, columns: Columns, requires: np.ndarray, view_stops: np.ndarray, tables: Columns,
    sets: np.ndarray,
) -> int:  # fmt: skip
    """Let gradients flow on from nodes of `order`, from the last-th of them to the first.

    Args:
        order, columns, view_stops: as of `asked_for`.
        requires: what it has found.
        tables: the `SetTables`.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none. The root's is given,
            the others are filled in.

    Returns:
        -1; or the place in `order` of a node whose operands get a set that has no number yet. Go on from there.
    """
    types, starts, counts, args = NodeColumns(*columns)
    start, single, first, slots, keys, unions = SetTables(*tables)
    for at in range(last, -1, -1):
        v = order[at]
        if sets[v] < 0:
            continue
        reaches = first[sets[v]]
        for slot in range(counts[v]):
            operand = args[starts[v] + slot]
            source = operand & 0xFFFFFFFF
            if not requires[source] or view_stops[operand >> 32] or (reaches >= 0 and not slots[reaches + slot]):
                continue
            kind = types[source]
            found = start[kind]
            if not single[kind]:
                read = operand >> 32 if operand >> 32 else ROW + reaches + slot
                found = union(keys, unions, sets[source] if sets[source] >= 0 else found, read)
                if found < 0:
                    return at
            sets[source] = found
    return -1


@compiled(small=True)
def union(keys: np.ndarray, unions: np.ndarray, before: int, read: int) -> int:
    """The set with outputs that are read added to it, by number; -1 if that is not known yet."""
    key = before << 32 | read
    at = (31 * before + read) & (len(keys) - 1)
    while keys[at] != key:
        if keys[at] < 0:
            return -1
        at = (at + 1) & (len(keys) - 1)
    return int(unions[at])


@compiled(small=True)
def per_batch(
    batches: np.ndarray, nodes: np.ndarray, columns: Columns, sets: np.ndarray, view_stops: np.ndarray,
    singles: np.ndarray, lists: np.ndarray, n_sets: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """What goes back through each batch.

    Args:
        batches: of a plan; its nodes are consecutive in `nodes`.
        columns: the `NodeColumns` of the graph.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none.
        singles, lists: per type, see `columns.span`; a list counts as one operand.
        n_sets: that there are.

    Returns:
        The parts of batches that gradients flow into, of records `Part`; the sets that occur, in the order in which
        the parts have them; per set, how many nodes, and into which operands (bits) gradients flow.
    """
    _, starts, counts, args = NodeColumns(*columns)
    parts = np.empty(len(nodes), PART)
    present = np.empty(n_sets, np.int32)
    n_present = 0
    rows = np.zeros(n_sets, np.int64)
    operands = np.zeros(n_sets, np.int64)
    part = np.full(n_sets, -1, np.int64)  # the last of the set
    at, used = 0, 0
    for b in range(len(batches)):
        kind = batches[b]["type"]
        for i in range(at, at + batches[b]["n"]):
            v = nodes[i]
            number = sets[v]
            if number < 0:
                continue
            if part[number] < 0:
                present[n_present] = number
                n_present += 1
            if part[number] < 0 or parts[part[number]]["batch"] != b:
                part[number] = used
                parts[used]["batch"], parts[used]["set"], parts[used]["n"] = b, number, 0
                used += 1
            parts[part[number]]["n"] += 1
            rows[number] += 1
            for slot in range(singles[kind] + lists[kind] if lists[kind] else counts[v]):
                begin, end = span(starts, counts, v, slot, singles[kind], lists[kind])
                for j in range(begin, end):
                    if sets[args[j] & 0xFFFFFFFF] >= 0 and not view_stops[args[j] >> 32]:
                        operands[number] |= 1 << min(slot, 62)
        at += batches[b]["n"]
    return parts[:used], present[:n_present].copy(), rows, operands
