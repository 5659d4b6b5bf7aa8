"""Making plans: rows assigned in consumer order, and each operand's way of access found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, NodeColumns, span
from edbatch.memory.plan.format import BATCH, GATHER, GATHER_MANY, OPERAND, SEGMENT, SHARED, SLICE, STRIDED, Plan
from edbatch.memory.plan.order import order_rows


class PlanTypes(NamedTuple):
    """What a plan depends on in types and views.

    Attributes:
        payloads: per type, integers that follow the operands in `args`.
        singles, lists: per type, how many single operands come before how many lists; see `columns.span`.
        windows: per type, the plain window of its results.
        view_windows: per code of a view, its window.
    """

    payloads: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    windows: np.ndarray
    view_windows: np.ndarray


class _Tables(NamedTuple):
    """A plan while it is written; see `Plan`.

    Attributes:
        number_of: per window, while an operand of several is divided, the number of its segment; else -1.
    """

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    number_of: np.ndarray


def make_plan(
    order: np.ndarray, offsets: np.ndarray, nodes: Columns, types: Columns, row: np.ndarray, first: int,
    rows: np.ndarray,
) -> Plan:  # fmt: skip
    """Order the rows of every batch, assign them, and find each operand's way of access.

    Args:
        order, offsets: the batches, the earliest first; `order` is reordered within batches.
        nodes: the `NodeColumns` of the whole graph.
        types: the `PlanTypes`.
        row: per node of the graph; filled in for the nodes of the plan.
        first: id of the plan's first node.
        rows: rows in use per window; not changed.

    Linear in nodes and operands.
    """
    return Plan(*_lay_out(order, offsets, nodes, types, row, first, rows))


# Each step goes over all batches: Numba counts the references to every array of a record when a function is called with
# it, which for every operand takes longer than the rest.
@compiled(small=True)
def _lay_out(
    order: np.ndarray, offsets: np.ndarray, columns: Columns, type_columns: Columns, row: np.ndarray, first: int,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    nodes, types = NodeColumns(*columns), PlanTypes(*type_columns)
    order_rows(order, offsets, nodes, types.singles, types.lists, first)
    rows = rows.copy()
    tables = _new_tables(order, offsets, nodes, types, len(rows))
    _assign_rows(tables, order, offsets, nodes, types, row, rows)
    used = _write_integers(tables, order, offsets, nodes, types)
    used, n_segments = _find_accesses(tables, used, order, offsets, nodes, types, row)
    return tables.batches, tables.operands, tables.segments[:n_segments], tables.indices[:used], rows


@compiled(small=True)
def _new_tables(order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: PlanTypes, windows: int) -> _Tables:
    """Room for a plan."""
    size = len(order) + len(offsets)  # of the indices, at most: rows and, where windows differ, positions
    edges = 0
    for node in order:
        edges += nodes.counts[node]
        size += types.payloads[nodes.types[node]]
    n_operands = 0
    for b in range(len(offsets) - 1):
        head = order[offsets[b]]
        n_operands += _slots(nodes, types, head)
    return _Tables(
        np.zeros(len(offsets) - 1, BATCH),
        np.zeros(n_operands, OPERAND),
        np.empty(edges, SEGMENT),  # what is not touched costs nothing
        np.empty(size + 2 * edges, np.int32),
        np.full(windows, -1, np.int32),
    )


@compiled(small=True)
def _assign_rows(
    tables: _Tables, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: PlanTypes, row: np.ndarray,
    rows: np.ndarray,
) -> None:  # fmt: skip
    """Where each batch's results and operands are."""
    operand = 0
    for b in range(len(offsets) - 1):
        head = order[offsets[b]]
        kind = nodes.types[head]
        window = types.windows[kind]
        batch = tables.batches[b]
        batch["type"] = kind
        batch["row"] = rows[window]
        batch["n"] = offsets[b + 1] - offsets[b]
        batch["operand"] = operand
        operand += _slots(nodes, types, head)
        for i in range(offsets[b], offsets[b + 1]):
            row[order[i]] = rows[window]
            rows[window] += 1


@compiled(small=True)
def _write_integers(
    tables: _Tables, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: PlanTypes
) -> int:
    """Write where nodes' lists begin and end, and their payloads; returns the number of indices in use."""
    indices, used = tables.indices, 0
    for b in range(len(offsets) - 1):
        lo, hi = offsets[b], offsets[b + 1]
        kind = nodes.types[order[lo]]
        if types.lists[kind]:
            tables.batches[b]["offsets"] = used
            total = 0
            for i in range(lo, hi):
                indices[used] = total
                used += 1
                total += (nodes.counts[order[i]] - types.singles[kind]) // types.lists[kind]
            indices[used] = total
            used += 1
        if types.payloads[kind] > 0:
            tables.batches[b]["integers"] = used
            for at in range(types.payloads[kind]):
                for i in range(lo, hi):
                    node = order[i]
                    indices[used] = nodes.args[nodes.starts[node] + nodes.counts[node] + at]
                    used += 1
    return used


@compiled(small=True)
def _find_accesses(
    tables: _Tables, used: int, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: PlanTypes,
    row: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Fill in the records of operands, and the rows that they list; returns indices and segments in use."""
    kinds, starts, counts, args = nodes
    operands, indices = tables.operands, tables.indices
    operand = n_segments = 0
    for b in range(len(offsets) - 1):
        of_batch = order[offsets[b] : offsets[b + 1]]
        head = of_batch[0]
        singles, lists = types.singles[kinds[head]], types.lists[kinds[head]]
        for slot in range(_slots(nodes, types, head)):
            found = operands[operand]
            operand += 1
            operand_id = args[span(starts, counts, head, slot, singles, lists)[0]]
            shown = _window(operand_id, nodes, types)
            if slot and _same_nodes(of_batch, slot, nodes, types):
                # Several outputs of the same nodes (h and c of a child): one list of rows serves both.
                before = operands[operand - 2]
                if before["access"] != GATHER_MANY and _one_window(of_batch, slot, shown, nodes, types):
                    operands[operand - 1] = before
                    found["window"] = shown
                    continue
            # Operands of one type and one view are seen through one window, which is all that has to be looked at in
            # most batches.
            begin = used
            view, kind = operand_id >> 32, kinds[operand_id & 0xFFFFFFFF]
            alike = True
            for node in of_batch:
                at, end = span(starts, counts, node, slot, singles, lists)
                for j in range(at, end):
                    source = args[j] & 0xFFFFFFFF
                    indices[used] = row[source]
                    used += 1
                    alike &= (args[j] >> 32 == view) & (kinds[source] == kind)
            found["n"] = used - begin
            if not (alike or _one_window(of_batch, slot, shown, nodes, types)):
                found["first"] = n_segments
                used, n_segments = _divide(tables, found, begin, of_batch, slot, nodes, types)
                continue
            found["window"] = shown
            distance = indices[begin + 1] - indices[begin] if used > begin + 1 else 1
            even = not (distance == 0 and lists and slot >= singles)  # segments need every row
            for at in range(begin + 2, used):
                if indices[at] - indices[at - 1] != distance:
                    even = False
                    break
            if even:
                found["access"] = SLICE if distance == 1 else SHARED if distance == 0 else STRIDED
                found["first"] = indices[begin]
                found["distance"] = distance
                used = begin
            else:
                found["access"] = GATHER
                found["first"] = begin
    return used, n_segments


@compiled(small=True, inline="always")
def _window(operand_id: int, nodes: NodeColumns, types: PlanTypes) -> Any:
    code = operand_id >> 32
    return types.view_windows[code] if code else types.windows[nodes.types[operand_id & 0xFFFFFFFF]]


@compiled(small=True)
def _same_nodes(of_batch: np.ndarray, slot: int, nodes: NodeColumns, types: PlanTypes) -> bool:
    """Whether an operand of a batch shows the same nodes as the one before it, each in its own way."""
    _, starts, counts, args = nodes
    singles, lists = types.singles[nodes.types[of_batch[0]]], types.lists[nodes.types[of_batch[0]]]
    if lists and slot == singles:  # a list after what is single
        return False
    for node in of_batch:
        begin, end = span(starts, counts, node, slot, singles, lists)
        for at in range(begin, end):
            if args[at - (end - begin)] & 0xFFFFFFFF != args[at] & 0xFFFFFFFF:
                return False
    return True


@compiled(small=True, inline="always")
def _slots(nodes: NodeColumns, types: PlanTypes, node: int) -> int:
    """How many operands a batch of such nodes has."""
    lists = types.lists[nodes.types[node]]
    return types.singles[nodes.types[node]] + lists if lists else nodes.counts[node]


@compiled(small=True)
def _one_window(of_batch: np.ndarray, slot: int, shown: int, nodes: NodeColumns, types: PlanTypes) -> bool:
    """Whether an operand of a batch is seen through one window."""
    singles, lists = types.singles[nodes.types[of_batch[0]]], types.lists[nodes.types[of_batch[0]]]
    alike = True
    for node in of_batch:
        begin, end = span(nodes.starts, nodes.counts, node, slot, singles, lists)
        for j in range(begin, end):
            alike &= _window(nodes.args[j], nodes, types) == shown
    return alike


@compiled(small=True)
def _divide(
    tables: _Tables, found: np.void, begin: int, of_batch: np.ndarray, slot: int, nodes: NodeColumns, types: PlanTypes
) -> tuple[int, int]:
    """Divide an operand, whose rows are the indices from `begin` on, into segments of one window each.

    They are sorted by window, in the order in which windows come: counted first, then put where they belong.
    Returns indices and segments in use.
    """
    segments, indices, number_of = tables.segments, tables.indices, tables.number_of
    singles, lists = types.singles[nodes.types[of_batch[0]]], types.lists[nodes.types[of_batch[0]]]
    rows = indices[begin : begin + found["n"]].copy()
    segment_of = np.empty(len(rows), np.int32)
    end = int(found["first"])
    at = 0
    for node in of_batch:
        first, last = span(nodes.starts, nodes.counts, node, slot, singles, lists)
        for j in range(first, last):
            shown = _window(nodes.args[j], nodes, types)
            if number_of[shown] < 0:
                segments[end]["window"] = shown
                segments[end]["n"] = 0
                number_of[shown] = end
                end += 1
            segment_of[at] = number_of[shown]
            segments[segment_of[at]]["n"] += 1
            at += 1
    used = begin
    for s in range(found["first"], end):
        segment = segments[s]
        segment["rows"] = used
        segment["positions"] = used + segment["n"]
        used += 2 * segment["n"]
        number_of[segment["window"]] = -1
        segment["n"] = 0
    for at in range(len(rows)):
        segment = segments[segment_of[at]]
        indices[segment["rows"] + segment["n"]] = rows[at]
        indices[segment["positions"] + segment["n"]] = at
        segment["n"] += 1
    found["access"] = GATHER_MANY
    found["window"] = -1
    found["segments"] = end - found["first"]
    return used, end
