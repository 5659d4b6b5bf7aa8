"""Where gradients flow: one walk over the batches that have run, last first, from the roots to what is wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.base.records import record_type
from edbatch.compiling.array_table import BOOL, INT32, INT64, ArrayTable, reader
from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, nodes_in
from edbatch.memory.plan.growing import tables_in

ROW = 1 << 31  # in the place of the code of a view: the row of all outputs, as an operand of a set of the reader's
MOST_SLOTS = 62  # operands that a set of bits tells apart; the last bit is of all that come after


class FlowTables(NamedTuple):
    """What is known of types, of views, and of the sets of live outputs that `live_outputs.LiveOutputs` has numbered.

    Attributes:
        holds: per type, whether its nodes are parameters, or hold some: their gradients are wanted.
        stops: per type, whether gradients end there: none flows to operands.
        view_stops: per code of a view, whether gradients end there.
        singles, lists: per type, see `columns.span`; a list counts as one operand.
        start: per type, the number of its one set, or of the empty one.
        single: per type, whether there is but one: whatever is read, gradients flow into it.
        first: per set, where the type's operands begin in `slots`; -1: gradients flow into all of them.
        slots: whether gradients flow on to the operand.
        keys, unions: from a set (above 32 bits) and what reads of the node, in order, to the set with what is read
            added to it. What reads is the code of a view or, of the whole row, ROW + the place in `slots`.
    """

    holds: np.ndarray
    stops: np.ndarray
    view_stops: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    start: np.ndarray
    single: np.ndarray
    first: np.ndarray
    slots: np.ndarray
    keys: np.ndarray
    unions: np.ndarray


class Part(NamedTuple):
    """The nodes of a batch with one set of live outputs: the batch of the stretch, the set, and how many they are."""

    batch: int
    set: int
    n: int


class FlowColumns(NamedTuple):
    """Where gradients flow.

    Attributes:
        requires: per node, whether its gradient is wanted, or that of something below it.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none do.
        parts: of records `Part`, those of the last batch first; `n_parts` [1]: how many.
        rows: per set, how many nodes of the parts have it.
        operands: per set, to which operands gradients flow on, a bit each.
    """

    requires: np.ndarray
    sets: np.ndarray
    parts: np.ndarray
    n_parts: np.ndarray
    rows: np.ndarray
    operands: np.ndarray


PART = record_type(Part._fields)
types_in = reader(FlowTables, BOOL, BOOL, BOOL, INT32, INT32, INT64, BOOL, INT64, BOOL, INT64, INT64)
flow_in = reader(FlowColumns, BOOL, INT64, PART, INT64, INT64, INT64)


def flow_table(nodes: int, sets: int) -> ArrayTable[FlowColumns]:
    """Columns with room for so many nodes and sets."""
    of_nodes = np.empty(nodes, BOOL), np.empty(nodes, INT64), np.empty(nodes, PART), np.zeros(1, INT64)
    return ArrayTable(FlowColumns(*of_nodes, *np.zeros((2, sets), INT64)))


def with_sets(flow: ArrayTable[FlowColumns], sets: int) -> ArrayTable[FlowColumns]:
    """The same columns with room for so many sets."""
    known = flow.tables
    if sets <= len(known.rows):
        return flow
    more = np.zeros(sets - len(known.rows), INT64)
    return ArrayTable(known._replace(rows=np.append(known.rows, more), operands=np.append(known.operands, more)))


@compiled(small=True)
def begin_flow(
    roots: np.ndarray, wanted: np.ndarray, all_wanted: bool, plan: np.ndarray, node_tables: np.ndarray,
    type_tables: np.ndarray, flow_tables: np.ndarray,
) -> int:  # fmt: skip
    """Find out which nodes require a gradient, and have those flow into the roots that do.

    Args:
        roots: ids of the expressions that are given a gradient.
        wanted: nodes whose gradients are, beside parameters; all_wanted: whether that of every node is.
        plan, ...: directories of a `GrowingPlan`, of nodes, of a `FlowTables`, and of `FlowColumns`, whose `requires`
            and `sets` are filled in.

    Returns:
        -1; or a key of `FlowTables` that there is not: begin again once there is.
    """
    nodes, types, flowing = nodes_in(node_tables), types_in(type_tables), flow_in(flow_tables)
    planned = tables_in(plan)
    n = len(nodes.types)
    flowing.sets[:n] = -1
    flowing.requires[:n] = False
    flowing.requires[wanted] = True
    _mark_required(planned.nodes[: planned.used[0]["nodes"]], nodes, types, all_wanted, flowing.requires)
    for number in range(len(roots)):
        root, code = roots[number] & 0xFFFFFFFF, roots[number] >> 32
        if flowing.requires[root] and not types.view_stops[code]:
            found = with_read(types, nodes.types[root], flowing.sets[root], code)
            if found < 0:
                return ~found
            flowing.sets[root] = found
    return -1


@compiled(small=True)
def _mark_required(
    order: np.ndarray, nodes: NodeColumns, types: FlowTables, all_wanted: bool, requires: np.ndarray
) -> None:
    """Fill in per node whether its gradient, or that of something below it, is wanted; those of wanted nodes are set.

    Args:
        order: the nodes that have run, in an order in which operands precede their users.
    """
    starts, counts, args, view_stops = nodes.starts, nodes.counts, nodes.args, types.view_stops
    for v in order:
        kind = nodes.types[v]
        found = all_wanted or requires[v] or (types.holds[kind] and not types.stops[kind])
        if not types.stops[kind]:
            for i in range(starts[v], starts[v] + counts[v]):
                found |= requires[args[i] & 0xFFFFFFFF] and not view_stops[args[i] >> 32]
        requires[v] = found


@compiled(small=True)
def go_back(
    stretch: tuple, plan: np.ndarray, node_tables: np.ndarray, type_tables: np.ndarray, flow_tables: np.ndarray
) -> int:
    """Let gradients flow through batches, last first, on to operands; divide the batches by the sets of their nodes.

    Args:
        stretch: the first batch, the batch after the last, and where their nodes begin among those of the plan.
        plan, ...: see `begin_flow`; what of the `FlowColumns` is of parts and of sets is filled in.

    Returns:
        See `begin_flow`; what has flowed so far may flow once more.
    """
    nodes, types, flowing, planned = nodes_in(node_tables), types_in(type_tables), flow_in(flow_tables), tables_in(plan)
    first, stop, end = stretch
    parts, sets, rows = flowing.parts, flowing.sets, flowing.rows
    for b in range(first, stop):
        end += planned.batches[b]["n"]
    flowing.n_parts[0] = 0
    rows[:] = 0
    flowing.operands[:] = 0
    for b in range(stop - 1, first - 1, -1):
        begin = end - planned.batches[b]["n"]
        for i in range(end - 1, begin - 1, -1):
            v = planned.nodes[i]
            number = sets[v]
            if number < 0:
                continue
            missing = _flow_on(v, nodes, types, flowing)
            if missing >= 0:
                return missing
            used = flowing.n_parts[0]
            part = used - 1
            while part >= 0 and parts[part]["batch"] == b - first and parts[part]["set"] != number:
                part -= 1
            if part < 0 or parts[part]["batch"] != b - first:
                part = used
                flowing.n_parts[0] += 1
                parts[part]["batch"], parts[part]["set"], parts[part]["n"] = b - first, number, 0
            parts[part]["n"] += 1
            rows[number] += 1
        end = begin
    return -1


@compiled(small=True)
def _flow_on(v: int, nodes: NodeColumns, types: FlowTables, flowing: FlowColumns) -> int:
    """Let a node's gradients flow on to its operands; returns what `begin_flow` does."""
    start, count, args, sets, kind = nodes.starts[v], nodes.counts[v], nodes.args, flowing.sets, nodes.types[v]
    number = sets[v]
    reaches, singles, lists = types.first[number], types.singles[kind], types.lists[kind]
    length = (count - singles) // max(1, lists)
    for i in range(count):
        operand = args[start + i]
        source, code = operand & 0xFFFFFFFF, operand >> 32
        if not flowing.requires[source] or types.view_stops[code] or (reaches >= 0 and not types.slots[reaches + i]):
            continue
        found = with_read(types, nodes.types[source], sets[source], code if code else ROW + reaches + i)
        if found < 0:
            return ~found
        sets[source] = found
        slot = i if lists == 0 or i < singles else singles + (i - singles) // length
        flowing.operands[number] |= np.int64(1) << min(slot, MOST_SLOTS)
    return -1


@compiled(small=True)
def with_read(types: FlowTables, kind: int, before: int, read: int) -> int:
    """The set of a node, which was this one (-1: none), with outputs that are read added; else ~ the missing key."""
    found = types.start[kind]
    if types.single[kind]:
        return int(found)
    key = (before if before >= 0 else found) << 32 | read
    at = np.searchsorted(types.keys, key)
    return int(types.unions[at]) if at < len(types.keys) and types.keys[at] == key else ~key
