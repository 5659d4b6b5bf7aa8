"""Which nodes gradients flow through: from the roots down, as far as something lies below whose gradient is wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.array_table import BOOL, INT32, INT64, reader
from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, nodes_in, span
from edbatch.memory.plan.growing import tables_in
from edbatch.runtime.backward.records import FlowColumns, flow_in

ROW = 1 << 31  # in the place of the code of a view: the row of all outputs, as an operand of a set of the reader's


class SetTables(NamedTuple):
    """The sets of types' outputs that `live_outputs.LiveOutputs` knows.

    Attributes:
        start: per type, the number of its one set, or of the empty one.
        single: per type, whether there is but one: whatever is read, gradients flow into it.
        first: per set, where the type's operands begin in `slots`; -1: gradients flow into all of them.
        slots: whether gradients flow on to the operand.
        keys, unions: from a set and what reads of the node, in order, to the set with what is read added to it; see
            `union`. What reads is the code of a view or, of the whole row, ROW + the place in `slots`.
    """

    start: np.ndarray
    single: np.ndarray
    first: np.ndarray
    slots: np.ndarray
    keys: np.ndarray
    unions: np.ndarray


class FlowTables(NamedTuple):
    """What is known of types and views.

    Attributes:
        holds: per type, whether its nodes are parameters, or hold some: their gradients are wanted.
        stops: per type, whether gradients end there: none flows to operands.
        view_stops: per code of a view, whether gradients end there.
        singles, lists: per type, see `columns.span`; a list counts as one operand.
        start, single, first, slots, keys, unions: see `SetTables`.
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


types_in = reader(FlowTables, BOOL, BOOL, BOOL, INT32, INT32, INT64, BOOL, INT64, BOOL, INT64, INT64)


@compiled(small=True)
def propagate(
    roots: np.ndarray, wanted: np.ndarray, at: int, all_wanted: bool, plan: np.ndarray, node_tables: np.ndarray,
    type_tables: np.ndarray, flow_tables: np.ndarray,
) -> int:  # fmt: skip
    """Let gradients flow from the roots to all that has run, as far as they are asked for.

    Args:
        roots: ids of the expressions that are given a gradient.
        at: -1; or what was returned, to go on from there.
        wanted: nodes whose gradients are, beside parameters; all_wanted: whether that of every node is.
        plan, ...: directories of a `GrowingPlan`, of nodes, of a `FlowTables`, whose sets come last one by one, and of
            `FlowColumns`, whose `requires` and `sets` are filled in.

    Returns:
        -1; or the place, in the plan's order, of a node whose operands get a set that has no number yet; or, of a root
        that does, -2 less its place among the roots: begin again then.
    """
    nodes, types, flowing = nodes_in(node_tables), types_in(type_tables), flow_in(flow_tables)
    planned = tables_in(plan)
    order = planned.nodes[: planned.used[0]["nodes"]]
    if at < 0:
        at = len(order) - 1
        flowing.sets[: len(nodes.types)] = -1
        flowing.requires[: len(nodes.types)] = False
        flowing.requires[wanted] = True
        _mark_required(order, nodes, types, all_wanted, flowing.requires)
        for number in range(len(roots)):
            root, code = roots[number] & 0xFFFFFFFF, roots[number] >> 32
            if not flowing.requires[root] or types.view_stops[code]:
                continue
            kind = nodes.types[root]
            found = types.start[kind]
            if not types.single[kind]:
                before = flowing.sets[root] if flowing.sets[root] >= 0 else found
                found = union(types.keys, types.unions, before, code)
                if found < 0:
                    return -2 - number
            flowing.sets[root] = found
    return _propagate(order, at, nodes, types, flowing)


@compiled(small=True)
def _mark_required(
    order: np.ndarray, nodes: NodeColumns, types: FlowTables, all_wanted: bool, requires: np.ndarray
) -> None:
    """Fill in per node whether its gradient is asked for: something lies in it or below whose gradient is wanted.

    Args:
        requires: set where nodes are wanted.
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
def _propagate(order: np.ndarray, last: int, nodes: NodeColumns, types: FlowTables, flowing: FlowColumns) -> int:
    """Let gradients flow on from nodes of `order`, from the last-th of them to the first; see `propagate`."""
    starts, counts, args, view_stops = nodes.starts, nodes.counts, nodes.args, types.view_stops
    requires, sets = flowing.requires, flowing.sets
    for at in range(last, -1, -1):
        v = order[at]
        if sets[v] < 0:
            continue
        reaches = types.first[sets[v]]
        for slot in range(counts[v]):
            operand = args[starts[v] + slot]
            source = operand & 0xFFFFFFFF
            if not requires[source] or view_stops[operand >> 32] or (reaches >= 0 and not types.slots[reaches + slot]):
                continue
            kind = nodes.types[source]
            found = types.start[kind]
            if not types.single[kind]:
                read = operand >> 32 if operand >> 32 else ROW + reaches + slot
                found = union(types.keys, types.unions, sets[source] if sets[source] >= 0 else found, read)
                if found < 0:
                    return at
            sets[source] = found
    return -1


@compiled(small=True)
def union(keys: np.ndarray, unions: np.ndarray, before: int, read: int) -> int:
    """The set with outputs that are read added to it, by number; -1 if that is not known yet."""
    key = before << 32 | read
    at = np.searchsorted(keys, key)
    return int(unions[at]) if at < len(keys) and keys[at] == key else -1


@compiled(small=True)
def divide(
    first: int, stop: int, first_node: int, n_sets: int, plan: np.ndarray, node_tables: np.ndarray,
    type_tables: np.ndarray, flow_tables: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Divide the batches of a plan from `first` to `stop`, whose nodes begin there, by the sets of their nodes.

    `parts`, `rows` and `present` of the flow tables are filled in.

    Returns:
        How many parts there are, and of how many sets: these are in the order in which the parts have them, for their
        numbers follow from what the process has seen, and the order in which parameters' gradients add up must not.
    """
    columns, types, flowing = nodes_in(node_tables), types_in(type_tables), flow_in(flow_tables)
    starts, counts, args, sets = columns.starts, columns.counts, columns.args, flowing.sets
    batches, nodes = tables_in(plan).batches, tables_in(plan).nodes
    parts, rows, present = flowing.parts, flowing.rows, flowing.present
    rows[:n_sets] = 0
    n_present = 0
    operands = np.zeros(n_sets, np.int64)
    part = np.full(n_sets, -1, np.int64)  # the last of the set
    at, used = first_node, 0
    for b in range(first, stop):
        kind = batches[b]["type"]
        singles, lists = types.singles[kind], types.lists[kind]
        for i in range(at, at + batches[b]["n"]):
            v = nodes[i]
            number = sets[v]
            if number < 0:
                continue
            if part[number] < 0:
                present[n_present]["set"] = number
                n_present += 1
            if part[number] < 0 or parts[part[number]]["batch"] != b - first:
                part[number] = used
                parts[used]["batch"], parts[used]["set"], parts[used]["n"] = b - first, number, 0
                used += 1
            parts[part[number]]["n"] += 1
            rows[number] += 1
            for slot in range(singles + lists if lists else counts[v]):
                begin, end = span(starts, counts, v, slot, singles, lists)
                for j in range(begin, end):
                    if sets[args[j] & 0xFFFFFFFF] >= 0 and not types.view_stops[args[j] >> 32]:
                        operands[number] |= 1 << min(slot, 62)
        at += batches[b]["n"]
    for at in range(n_present):
        present[at]["operands"] = operands[present[at]["set"]]
    return used, n_present
