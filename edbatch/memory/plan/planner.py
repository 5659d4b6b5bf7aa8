"""Making plans: rows assigned in consumer order, and each operand's way of access found."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, TypeColumns, nodes_in, span, types_in
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED, SLICE, STRIDED
from edbatch.memory.plan.growing import PlanTables, tables_in
from edbatch.memory.plan.order import order_rows


# Each step goes over all batches: Numba counts the references to every array of a record when a function is called with
# it, which for every operand takes longer than the rest.
@compiled(small=True)
def extend_plan(
    order: np.ndarray, offsets: np.ndarray, first: int, n_windows: int, node_tables: np.ndarray,
    type_tables: np.ndarray, plan_tables: np.ndarray, arenas: np.ndarray,
) -> bool:  # fmt: skip
    """Append batches to a plan: order the rows of each, assign them, and find each operand's way of access.

    Args:
        order, offsets: the batches, the earliest first; `order` is reordered within batches.
        first: id of the first of their nodes.
        n_windows: that there are.
        node_tables, type_tables: directories of the `NodeColumns` of the graph, where the rows of these are filled in,
            and of the `TypeColumns`.
        plan_tables: directory of a `GrowingPlan`, which has room.
        arenas: of records `Rows`; those in use are counted.

    Returns:
        Whether there is room for the rows in their arenas.

    Linear in nodes and operands.
    """
    nodes, types = nodes_in(node_tables), types_in(type_tables)
    tables = tables_in(plan_tables)
    order_rows(order, offsets, nodes, types.singles, types.lists, first)
    has_room = _assign_rows(tables, order, offsets, nodes, types, arenas)
    _write_integers(tables, order, offsets, nodes, types)
    _find_accesses(tables, order, offsets, nodes, types, n_windows)
    used = tables.used[0]
    for i in range(len(order)):
        tables.nodes[used["nodes"] + i] = order[i]
    used["nodes"] += len(order)
    used["batches"] += len(offsets) - 1
    return has_room


@compiled(small=True, inline="always")
def _assign_rows(
    tables: PlanTables, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: TypeColumns,
    arenas: np.ndarray,
) -> bool:  # fmt: skip
    """Where each batch's results and operands are; returns whether there is room."""
    number, operand, has_room = tables.used[0]["batches"], tables.used[0]["operands"], True
    for b in range(len(offsets) - 1):
        head = order[offsets[b]]
        kind = nodes.types[head]
        arena = arenas[types.arenas[kind]]
        batch = tables.batches[number + b]
        batch["type"] = kind
        batch["row"] = arena["used"]
        batch["n"] = offsets[b + 1] - offsets[b]
        batch["operand"] = operand
        batch["integers"], batch["offsets"] = 0, 0
        operand += _slots(nodes, types, head)
        for i in range(offsets[b], offsets[b + 1]):
            nodes.row[order[i]] = arena["used"]
            arena["used"] += 1
        has_room &= arena["used"] <= arena["room"]
    return has_room


@compiled(small=True, inline="always")
def _write_integers(
    tables: PlanTables, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: TypeColumns
) -> None:
    """Write where nodes' lists begin and end, and where their integers are."""
    indices, used, number = tables.indices, tables.used[0]["indices"], tables.used[0]["batches"]
    integers = tables.used[0]["integers"]
    for b in range(len(offsets) - 1):
        lo, hi = offsets[b], offsets[b + 1]
        kind = nodes.types[order[lo]]
        if types.lists[kind]:
            tables.batches[number + b]["offsets"] = used
            total = 0
            for i in range(lo, hi):
                indices[used] = total
                used += 1
                total += (nodes.counts[order[i]] - types.singles[kind]) // types.lists[kind]
            indices[used] = total
            used += 1
        tables.batches[number + b]["integers"] = integers
        for at in range(types.n_integers[kind]):
            for i in range(lo, hi):
                node = order[i]
                tables.integers[integers] = nodes.args[nodes.starts[node] + nodes.counts[node] + at]
                integers += 1
    tables.used[0]["indices"], tables.used[0]["integers"] = used, integers


@compiled(small=True, inline="always")
def _find_accesses(
    tables: PlanTables, order: np.ndarray, offsets: np.ndarray, nodes: NodeColumns, types: TypeColumns,
    n_windows: int,
) -> None:  # fmt: skip
    """Fill in the records of operands, and the rows that they list."""
    kinds, starts, counts, args = nodes.types, nodes.starts, nodes.counts, nodes.args
    operands, indices = tables.operands, tables.indices
    operand, used, n_segments = tables.used[0]["operands"], tables.used[0]["indices"], tables.used[0]["segments"]
    segment_of = np.empty(0, np.int32)  # per window, while an operand of several is divided, its segment; else -1
    for b in range(len(offsets) - 1):
        of_batch = order[offsets[b] : offsets[b + 1]]
        head = of_batch[0]
        singles, lists = types.singles[kinds[head]], types.lists[kinds[head]]
        for slot in range(_slots(nodes, types, head)):
            found = operands[operand]
            operand += 1
            found["distance"], found["segments"] = 0, 0
            shown = _window(args[span(starts, counts, head, slot, singles, lists)[0]], nodes, types)
            begin, alike = used, True
            for node in of_batch:
                at, end = span(starts, counts, node, slot, singles, lists)
                for j in range(at, end):
                    indices[used] = nodes.row[args[j] & 0xFFFFFFFF]
                    used += 1
                    alike &= _window(args[j], nodes, types) == shown
            found["n"] = used - begin
            if not alike:
                found["first"] = n_segments
                if len(segment_of) == 0:
                    segment_of = np.full(n_windows, -1, np.int32)
                used, n_segments = _divide(tables, segment_of, found, begin, of_batch, slot, nodes, types)
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
    in_use = tables.used[0]
    in_use["operands"], in_use["indices"], in_use["segments"] = operand, used, n_segments


@compiled(small=True, inline="always")
def _window(operand_id: int, nodes: NodeColumns, types: TypeColumns) -> Any:
    code = operand_id >> 32
    return types.view_windows[code] if code else types.windows[nodes.types[operand_id & 0xFFFFFFFF]]


@compiled(small=True, inline="always")
def _slots(nodes: NodeColumns, types: TypeColumns, node: int) -> int:
    """How many operands a batch of such nodes has."""
    lists = types.lists[nodes.types[node]]
    return types.singles[nodes.types[node]] + lists if lists else nodes.counts[node]


@compiled(small=True)
def _divide(
    tables: PlanTables, number_of: np.ndarray, found: np.void, begin: int, of_batch: np.ndarray, slot: int,
    nodes: NodeColumns, types: TypeColumns,
) -> tuple[int, int]:  # fmt: skip
    """Divide an operand, whose rows are the indices from `begin` on, into segments of one window each.

    They are sorted by window, in the order in which windows come: counted first, then put where they belong.

    Args:
        number_of: per window, -1.

    Returns:
        Indices and segments in use.
    """
    segments, indices = tables.segments, tables.indices
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
