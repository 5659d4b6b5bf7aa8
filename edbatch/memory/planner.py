"""Making plans: rows assigned in consumer order, and each operand's way of access found."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.compiled import compiled
from edbatch.memory.order import order_rows
from edbatch.memory.plan import BATCH, GATHER, GATHER_MANY, OPERAND, SEGMENT, SHARED, SLICE, STRIDED, Plan


def make_plan(
    order: np.ndarray,
    offsets: np.ndarray,
    types: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    payloads: np.ndarray,
    variadic: np.ndarray,
    args: np.ndarray,
    windows: np.ndarray,
    view_windows: np.ndarray,
    row: np.ndarray,
    first: int,
    rows: np.ndarray,
) -> Plan:
    """Order the rows of every batch, assign them, and find each operand's way of access.

    Args:
        order, offsets: the batches, the earliest first; `order` is reordered within batches.
        types: per node of the graph.
        starts, counts: per node from `first` on: where its operands are in `args`, and how many.
        payloads: per type, integers that follow the operands in `args`.
        variadic: per type, whether its nodes have any number of operands.
        args: operand ids (the node in the lower 32 bits, the code of a view above) and payloads.
        windows: per type, the plain window of its results.
        view_windows: per code of a view, its window.
        row: per node of the graph; filled in for the nodes of the plan.
        first: id of the plan's first node.
        rows: rows in use per window; not changed.

    Linear in nodes and operands.
    """
    return Plan(
        *_lay_out(
            order, offsets, types, starts, counts, payloads, variadic, args, windows, view_windows, row, first, rows
        )
    )


@compiled(small=True, inline="always")
def _window(operand_id: int, types: np.ndarray, windows: np.ndarray, view_windows: np.ndarray) -> Any:
    code = operand_id >> 32
    return view_windows[code] if code else windows[types[operand_id & 0xFFFFFFFF]]


@compiled(small=True)
def _same_nodes(
    order: np.ndarray, lo: int, hi: int, starts: np.ndarray, args: np.ndarray, slot: int, other: int
) -> bool:
    """Whether two operands of a batch show the same nodes, each in its own way."""
    for i in range(lo, hi):
        at = starts[order[i]]
        if args[at + slot] & 0xFFFFFFFF != args[at + other] & 0xFFFFFFFF:
            return False
    return True


@compiled(small=True)
def _one_window(
    order: np.ndarray,
    lo: int,
    hi: int,
    starts: np.ndarray,
    args: np.ndarray,
    slot: int,
    shown: int,
    types: np.ndarray,
    windows: np.ndarray,
    view_windows: np.ndarray,
) -> bool:
    """Whether an operand of a batch is seen through one window."""
    alike = True
    for i in range(lo, hi):
        alike &= _window(args[starts[order[i]] + slot], types, windows, view_windows) == shown
    return alike


@compiled(small=True)
def _lay_out(
    order: np.ndarray,
    offsets: np.ndarray,
    types: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    payloads: np.ndarray,
    variadic: np.ndarray,
    args: np.ndarray,
    windows: np.ndarray,
    view_windows: np.ndarray,
    row: np.ndarray,
    first: int,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    order_rows(order, offsets, types[first:], starts, counts, variadic, args, first)
    n_batches = len(offsets) - 1
    rows = rows.copy()
    size = len(order) + len(offsets)  # of the indices, at most: rows and, where windows differ, positions
    for i in range(len(order)):
        size += 2 * counts[order[i]] + payloads[types[first + order[i]]]
    n_operands = 0
    for b in range(n_batches):
        head = order[offsets[b]]
        kind = types[first + head]
        n_operands += 1 if variadic[kind] else counts[head]
        for i in range(offsets[b], offsets[b + 1]):
            row[first + order[i]] = rows[windows[kind]]
            rows[windows[kind]] += 1
    batches = np.zeros(n_batches, BATCH)
    operands = np.zeros(n_operands, OPERAND)
    segments = np.zeros(16, SEGMENT)
    number_of = np.full(0, -1, np.int32)  # per window, once an operand is of several, its number among these
    indices = np.empty(size, np.int32)
    used = 0
    n_segments = 0
    operand = 0
    for b in range(n_batches):
        lo, hi = offsets[b], offsets[b + 1]
        head = order[lo]
        kind = types[first + head]
        n = hi - lo
        batch = batches[b]
        batch["type"] = kind
        batch["row"] = row[first + head]
        batch["n"] = n
        batch["operand"] = operand
        if variadic[kind]:
            batch["offsets"] = used
            total = 0
            for i in range(lo, hi):
                indices[used] = total
                used += 1
                total += counts[order[i]]
            indices[used] = total
            used += 1
            slots = 1
        else:
            total = n
            slots = counts[head]
        for slot in range(slots):
            if slot and _same_nodes(order, lo, hi, starts, args, slot - 1, slot):
                # Several outputs of the same nodes (h and c of a child): one list of rows serves both.
                before = operands[operand - 1]
                shown = _window(args[starts[head] + slot], types, windows, view_windows)
                if before["access"] != GATHER_MANY and _one_window(
                    order, lo, hi, starts, args, slot, shown, types, windows, view_windows
                ):
                    operands[operand] = before
                    operands[operand]["window"] = shown
                    operand += 1
                    continue
            # Fill in the rows. Operands of one type and one view are seen through one window, which is all that has
            # to be looked at in most batches.
            begin = used
            operand_id = args[starts[head] + slot]
            shown = _window(operand_id, types, windows, view_windows)
            view, source_kind = operand_id >> 32, types[operand_id & 0xFFFFFFFF]
            alike = True
            for i in range(lo, hi):
                node = order[i]
                for j in range(starts[node] + slot, starts[node] + (counts[node] if variadic[kind] else slot + 1)):
                    source = args[j] & 0xFFFFFFFF
                    indices[used] = row[source]
                    used += 1
                    alike &= (args[j] >> 32 == view) & (types[source] == source_kind)
            one_window = True
            if not alike:
                for i in range(lo, hi):
                    node = order[i]
                    for j in range(starts[node] + slot, starts[node] + (counts[node] if variadic[kind] else slot + 1)):
                        one_window &= _window(args[j], types, windows, view_windows) == shown
            distance = indices[begin + 1] - indices[begin] if total > 1 else 1
            even = True
            for at in range(begin + 2, used):
                if indices[at] - indices[at - 1] != distance:
                    even = False
                    break
            found = operands[operand]
            found["n"] = total
            if one_window and even and not (distance == 0 and variadic[kind]):  # segments need every row
                found["access"] = SLICE if distance == 1 else SHARED if distance == 0 else STRIDED
                found["window"] = shown
                found["first"] = indices[begin]
                found["distance"] = distance
                used = begin
            elif one_window:
                found["access"] = GATHER
                found["window"] = shown
                found["first"] = begin
            else:
                found["access"] = GATHER_MANY
                found["window"] = -1
                found["first"] = n_segments
                # Sorted by window, in the order in which windows come: counted first, then put where they belong.
                if not len(number_of):
                    number_of = np.full(1 + max(windows.max(), view_windows.max()), -1, np.int32)
                flat_rows = indices[begin:used].copy()
                flat_segments = np.empty(total, np.int32)
                first_segment = n_segments
                at = 0
                for i in range(lo, hi):
                    node = order[i]
                    for j in range(slot, counts[node] if variadic[kind] else slot + 1):
                        shown = _window(args[starts[node] + j], types, windows, view_windows)
                        if number_of[shown] < 0:
                            if n_segments == len(segments):
                                grown = np.zeros(2 * n_segments, SEGMENT)
                                grown[:n_segments] = segments
                                segments = grown
                            segments[n_segments]["window"] = shown
                            number_of[shown] = n_segments
                            n_segments += 1
                        flat_segments[at] = number_of[shown]
                        segments[flat_segments[at]]["n"] += 1
                        at += 1
                used = begin
                for s in range(first_segment, n_segments):
                    segment = segments[s]
                    segment["rows"] = used
                    segment["positions"] = used + segment["n"]
                    used += 2 * segment["n"]
                    number_of[segment["window"]] = -1
                    segment["n"] = 0
                for at in range(total):
                    segment = segments[flat_segments[at]]
                    indices[segment["rows"] + segment["n"]] = flat_rows[at]
                    indices[segment["positions"] + segment["n"]] = at
                    segment["n"] += 1
                found["segments"] = n_segments - first_segment
            operand += 1
        if payloads[kind] > 0:
            batch["integers"] = used
            for at in range(payloads[kind]):
                for i in range(lo, hi):
                    node = order[i]
                    indices[used] = args[starts[node] + counts[node] + at]
                    used += 1
    return batches, operands, segments[:n_segments], indices[:used], rows
