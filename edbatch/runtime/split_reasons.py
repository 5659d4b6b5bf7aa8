"""Compiled passes that find out what decides how cells are split: what waits for what, and what repeats."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, nodes_in
from edbatch.runtime.type_columns import facts_in

MOST_INTEGERS = 1 << 24  # look-ups of more entries are not compared
MAX_AT_ONCE = 63  # types that one pass over the nodes can tell apart


@compiled(small=True)
def found_out(
    first: int, integers: np.ndarray, node_tables: np.ndarray, type_tables: np.ndarray, most_distinct: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """What decides how the nodes from `first` on are split.

    Args:
        node_tables, type_tables: directories of `NodeColumns` and of `TypeFacts`.
        most_distinct: of what is looked up, for what depends on it alone to be shared; a share of the nodes.

    Returns:
        The types that may be split, and how many nodes each has; of each which operands are recurrent, how its results
        are read, and whether what it looks up repeats.
    """
    nodes, known = nodes_in(node_tables), facts_in(type_tables)
    columns = NodeColumns(
        nodes.types[first:], nodes.starts[first:], nodes.counts[first:], nodes.args, nodes.row[first:]
    )
    kinds, times, width = present(columns.types, columns.counts, known.may_split)
    recurrent = np.zeros((len(kinds), width), np.bool_)
    late = False
    for its in range(len(kinds)):
        late |= known.has_late[kinds[its]]
    read = np.zeros((len(kinds), len(known.view_windows) if late else 0), np.uint8)
    for begin in range(0, len(kinds), MAX_AT_ONCE):
        end = begin + MAX_AT_ONCE
        recurrent_operands(first, columns, known.is_source, kinds[begin:end], recurrent[begin:end])
        if late and recurrent[begin:end].any():
            views_read(first, columns, numbered(len(known.windows), kinds[begin:end]), read[begin:end])
    looking = np.zeros(len(kinds), np.bool_)
    for its in range(len(kinds)):
        looking[its] = known.looks_up[kinds[its]] and not recurrent[its].any()
    if looking.any():
        number = numbered(len(known.windows), kinds)
        number[kinds[~looking]] = -1
        looking = repeats(columns, integers, number, len(kinds), most_distinct)
    return kinds, times, recurrent, read, looking


@compiled(small=True)
def numbered(n_types: int, kinds: np.ndarray) -> np.ndarray:
    """Per type its number among some; -1: it is none of these."""
    number = np.full(n_types, -1, np.int32)
    for its in range(len(kinds)):
        number[kinds[its]] = its
    return number


@compiled(small=True)
def present(types: np.ndarray, counts: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Which of the chosen types (a flag per type) nodes are of, how many of each, and the most operands of any."""
    times = np.zeros(len(chosen), np.int64)
    width = 0
    for i in range(len(types)):
        if chosen[types[i]]:
            times[types[i]] += 1
            width = max(width, counts[i])
    kinds = np.flatnonzero(times)
    return kinds, times[kinds], width


@compiled(small=True)
def recurrent_operands(
    first: int, columns: NodeColumns, is_source: np.ndarray, kinds: np.ndarray, recurrent: np.ndarray
) -> None:
    """Which operands of some types depend on nodes of the same type, among the nodes from `first` on.

    So does an operand that is fed by a type that feeds one that does: where leaves are children beside inner nodes,
    both children may be either, even if the trees of one mini-batch happen to lean to one side.

    Args:
        kinds: the types that are asked for, at most 63.
        recurrent: bool [kinds, operands], filled in; at least as many operands as any of the types has.
    """
    types, starts, counts, args, _ = columns
    number = numbered(len(is_source), kinds)
    below = np.empty(len(types), np.int64)  # the set of types that a node depends on, or is of
    feeds = np.zeros((*recurrent.shape, len(is_source)), np.bool_)
    for i in range(len(types)):
        kind = number[types[i]]
        found = np.int64(0)
        for slot in range(counts[i]):
            source = (args[starts[i] + slot] & 0xFFFFFFFF) - first
            if source >= 0:
                found |= below[source]
                if kind >= 0 and not is_source[types[source]]:
                    feeds[kind, slot, types[source]] = True
                    if (below[source] >> kind) & 1:
                        recurrent[kind, slot] = True
        below[i] = found if kind < 0 else found | (np.int64(1) << kind)
    for its in range(len(kinds)):
        changed = True
        while changed:
            changed = False
            for known in np.flatnonzero(recurrent[its]):
                for other in np.flatnonzero(~recurrent[its]):
                    if (feeds[its, known] & feeds[its, other]).any():
                        recurrent[its, other] = changed = True


@compiled(small=True)
def views_read(first: int, columns: NodeColumns, number: np.ndarray, read: np.ndarray) -> None:
    """How the results of some types are read by the nodes from `first` on.

    Args:
        columns: as in `recurrent_operands`.
        number: per type its number among those that are asked for, or -1.
        read: uint8 [kinds, codes of views], filled in: above 1 where what reads the view is of the same type or leads
            to such a node, 1 where something else reads it.
    """
    types, starts, counts, args, _ = columns
    above = np.zeros(len(types), np.int64)  # the set of types that depend on a node
    for i in range(len(types) - 1, -1, -1):
        kind = number[types[i]]
        found = above[i] if kind < 0 else above[i] | (np.int64(1) << kind)
        for at in range(starts[i], starts[i] + counts[i]):
            source = (args[at] & 0xFFFFFFFF) - first
            if source >= 0:
                above[source] |= found
                its = number[types[source]]
                if its >= 0:
                    read[its, args[at] >> 32] |= 2 if (found >> its) & 1 else 1


@compiled(small=True)
def repeats(columns: NodeColumns, integers: np.ndarray, number: np.ndarray, n_kinds: int, most: float) -> np.ndarray:
    """Whether at most that share of the integers of a type's nodes are different; `number`: as in `views_read`."""
    types, starts, counts, args, _ = columns
    largest = -1
    for i in range(len(types)):
        if number[types[i]] >= 0:
            largest = max(largest, integers[args[starts[i] + counts[i]]])
    found = np.zeros(n_kinds, np.bool_)
    if largest < 0 or largest >= MOST_INTEGERS:
        return found
    seen = np.zeros((n_kinds, largest + 1), np.bool_)
    total = np.zeros(n_kinds, np.int64)
    for i in range(len(types)):
        its = number[types[i]]
        if its >= 0:
            total[its] += 1
            seen[its, integers[args[starts[i] + counts[i]]]] = True
    for its in range(n_kinds):
        found[its] = total[its] > 0 and seen[its].sum() <= most * total[its]
    return found
