"""Writing the plan of a backward pass: batches, operands, lists, and additions of rows to operands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.groups import group_rows
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED, SLICE, STRIDED, Segment
from edbatch.memory.plan.growing import PlanTables
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.rules import RuleTables


class Added(NamedTuple):
    """Rows that are added.

    Attributes:
        window: that shows them.
        row: the first.
        positions: where in `indices` the list begins in whose order they are added, counted from the first; -1: in
            their own.
        task: what adds them, in batches.
    """

    window: int
    row: int
    positions: int
    task: int


@compiled(small=True)
def append_batch(out: PlanTables, type: int, row: int, n: int, integers: int, offsets: int) -> None:
    """A batch whose operands are those that are appended next."""
    used = out.used[0]
    batch = out.batches[used["batches"]]
    batch["type"] = type
    batch["row"] = row
    batch["n"] = n
    batch["operand"] = used["operands"]
    batch["integers"] = integers
    batch["offsets"] = offsets
    used["batches"] += 1


@compiled(small=True)
def append_operand(out: PlanTables, access: int, window: int, first: int, distance: int, segments: int, n: int) -> None:
    """An operand of the batch that was appended last."""
    used = out.used[0]
    operand = out.operands[used["operands"]]
    operand["access"] = access
    operand["window"] = window
    operand["first"] = first
    operand["distance"] = distance
    operand["segments"] = segments
    operand["n"] = n
    used["operands"] += 1


@compiled(small=True)
def append(out: PlanTables, found: np.ndarray) -> int:
    """Where a list begins that comes after all others."""
    used = out.used[0]
    begin = used["indices"]
    used["indices"] += len(found)
    out.indices[begin : used["indices"]] = found
    return int(begin)


@compiled(small=True)
def select(one: np.ndarray, chosen: np.ndarray, out: PlanTables) -> None:
    """Have only some elements of an operand read, in the same order; `one` holds nothing else, and lives on."""
    operand, segments, lists = one[0], out.segments, out.indices
    access, first, n = operand["access"], operand["first"], operand["n"]
    operand["n"] = len(chosen)
    if access == GATHER_MANY:
        used = out.used[0]
        number = np.full(n, -1, np.int32)
        for i in range(len(chosen)):
            number[chosen[i]] = i
        operand["first"] = used["segments"]
        for at in range(first, first + operand["segments"]):
            rows, positions, some = segments[at]["rows"], segments[at]["positions"], segments[at]["n"]
            new = number[lists[positions : positions + some]]
            kept = np.flatnonzero(new >= 0)
            if len(kept):
                segment = segments[used["segments"]]
                segment["window"] = segments[at]["window"]
                segment["rows"] = append(out, lists[rows : rows + some][kept])
                segment["positions"] = append(out, new[kept])
                segment["n"] = len(kept)
                used["segments"] += 1
        operand["segments"] = used["segments"] - operand["first"]
    elif access == GATHER:
        operand["first"] = append(out, lists[first : first + n][chosen])
    elif access != SHARED:
        operand["first"] = append(out, np.int32(first) + chosen * np.int32(operand["distance"]))
        operand["access"] = GATHER
        operand["distance"] = 0


@compiled(small=True)
def add_rows(one: np.ndarray, added: Added, out: PlanTables, tables: RuleTables, seen: np.ndarray) -> None:
    """Add rows to an operand.

    Args:
        one: the operand, and nothing else.
        seen: for `group_rows`; without entries: rows that occur several times in a list need not be known.
    """
    operand, lists, owners = one[0], out.indices, added.positions
    access, window, first, count = operand["access"], operand["window"], operand["first"], operand["n"]
    if access != GATHER_MANY and tables.stopped[window]:
        return
    as_list = access == SHARED and (owners >= 0 or (seen.size and tables.windows[window]["scattered"] >= 0))
    if access <= STRIDED and not as_list:
        append_batch(out, added.task, 0, count, 0, owners)
        append_operand(out, access, window + GRADIENT, first, operand["distance"], 0, count)
        append_operand(out, SLICE, added.window, added.row, 1, 0, count)
        return
    if access == SHARED:
        first = append(out, np.full(count, first, np.int32))
    if access != GATHER_MANY:
        _add_to_rows(Segment(window, first, owners, count), added, out, seen)
        return
    for at in range(first, first + operand["segments"]):
        segment = out.segments[at]
        places, n = segment["positions"], segment["n"]
        if tables.stopped[segment["window"]]:
            continue
        if owners >= 0:
            places = append(out, lists[owners : owners + count][lists[places : places + n]])
        _add_to_rows(Segment(segment["window"], segment["rows"], places, n), added, out, seen)


@compiled(small=True)
def _add_to_rows(to: Segment, added: Added, out: PlanTables, seen: np.ndarray) -> None:
    """Add rows, in the order of the segment's positions, to the listed rows of its window."""
    lists, target = out.indices, to.window + GRADIENT
    rows, n, positions = to.rows, to.n, to.positions
    if seen.size:
        # Each list is followed by a batch: how many there are tells lists apart.
        found, offsets, members = group_rows(lists[rows : rows + n], seen, out.used[0]["batches"])
        if len(found) < n:
            if positions >= 0:
                members = lists[positions : positions + n][members]
            groups = append(out, offsets)
            append(out, members)
            append(out, found)
            append_batch(out, added.task, 0, n, 0, -1)
            append_operand(out, GATHER_MANY, target, groups, 0, len(found), n)
            append_operand(out, SLICE, added.window, added.row, 1, 0, n)
            return
    append_batch(out, added.task, 0, n, 0, positions)
    append_operand(out, GATHER, target, rows, 0, 0, n)
    append_operand(out, SLICE, added.window, added.row, 1, 0, n)
