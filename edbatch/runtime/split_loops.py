"""Compiled passes over the nodes of a graph: what waits for what, and cells made into parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, NodeColumns

MOST_INTEGERS = 1 << 24  # look-ups of more entries are not compared


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
    first: int, columns: Columns, is_source: np.ndarray, kinds: np.ndarray, recurrent: np.ndarray
) -> None:
    """Which operands of some types depend on nodes of the same type, among the nodes from `first` on.

    So does an operand that is fed by a type that feeds one that does: where leaves are children beside inner nodes,
    both children may be either, even if the trees of one mini-batch happen to lean to one side.

    Args:
        columns: the `NodeColumns` of these nodes.
        kinds: the types that are asked for, at most 63.
        recurrent: bool [kinds, operands], filled in; at least as many operands as any of the types has.
    """
    types, starts, counts, args = NodeColumns(*columns)
    number = np.full(len(is_source), -1, np.int32)
    for its in range(len(kinds)):
        number[kinds[its]] = its
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
def views_read(first: int, columns: Columns, n_types: int, kinds: np.ndarray, read: np.ndarray) -> None:
    """How the results of some types are read by the nodes from `first` on.

    Args:
        columns, kinds: as in `recurrent_operands`.
        n_types: number of all types.
        read: uint8 [kinds, codes of views], filled in: above 1 where what reads the view is of the same type or leads
            to such a node, 1 where something else reads it.
    """
    types, starts, counts, args = NodeColumns(*columns)
    number = np.full(n_types, -1, np.int32)
    for its in range(len(kinds)):
        number[kinds[its]] = its
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


class SplitColumns(NamedTuple):
    """How the nodes of each type are split.

    Attributes:
        split: per type, the number of its split, or -1.
        integers: per split, operands and integers of the whole.
        parts: [splits + 1] where the parts of each split begin.
        kinds, operands, given_begin: per part, its type, its number of operands, and [parts + 1] where `given` begins.
        given: see `passes.split_stages.Part`.
        core: per split, the part that users of the whole read in its place where `codes` says so; -1: the last.
        codes: [splits, codes] from a view of the whole to one of the core; -1 if only the whole has it.
        shared: per part, a number of its own if it depends on an integer alone and is shared by equal ones, else -1.
    """

    split: np.ndarray
    integers: np.ndarray
    parts: np.ndarray
    kinds: np.ndarray
    operands: np.ndarray
    given_begin: np.ndarray
    given: np.ndarray
    core: np.ndarray
    codes: np.ndarray
    shared: np.ndarray


@compiled(small=True)
def make_parts(first: int, n: int, n_args: int, columns: Columns, split_columns: Columns) -> tuple[int, int]:
    """Make parts of the nodes from `first` on, in place; there must be room.

    A node's last part takes its place, the others get new ids; but parts that look up the same are one.

    Args:
        n, n_args: nodes and integers in use.
        columns: the `NodeColumns` of all nodes, with that room.
        split_columns: the `SplitColumns`.

    Returns:
        Nodes and integers in use after it.
    """
    types, starts, counts, args = NodeColumns(*columns)
    splits = SplitColumns(*split_columns)
    parts, given, shared = splits.parts, splits.given, splits.shared
    made_of = _shared_parts(shared, args[:n_args])
    part_ids = np.empty(len(shared), np.int32)
    end = n
    moves = splits.core.max() >= 0
    cores = np.full(end - first if moves else 0, -1, np.int32)  # per node, the part that its users read
    split_of = np.empty(len(cores), np.int32)
    whole = np.empty(max(1, splits.integers.max()), np.int64)
    for node in range(first, end):
        if moves:
            for at in range(starts[node], starts[node] + counts[node]):
                source = (args[at] & 0xFFFFFFFF) - first
                if 0 <= source < len(cores) and cores[source] >= 0:
                    code = splits.codes[split_of[source], args[at] >> 32]
                    if code >= 0:
                        args[at] = (code << 32) | cores[source]
        s = splits.split[types[node]] if types[node] < len(splits.split) else -1
        if s < 0:
            continue
        at = int(starts[node])
        for k in range(splits.integers[s]):
            whole[k] = args[at + k]
        last = parts[s + 1] - 1
        for part in range(parts[s], last + 1):
            begin, end_given = splits.given_begin[part], splits.given_begin[part + 1]
            made = node
            if part < last:
                key = whole[given[begin]] if shared[part] >= 0 else -1
                is_shared = 0 <= key < made_of.shape[1]
                if is_shared and made_of[shared[part], key] >= 0:
                    part_ids[part] = made_of[shared[part], key]
                    continue
                made = n
                n += 1
                if is_shared:
                    made_of[shared[part], key] = made
            part_ids[part] = made
            if part < last or end_given - begin > splits.integers[s]:  # else it has room where the whole was
                at = n_args
                n_args += end_given - begin
            else:
                at = int(starts[node])
            types[made] = splits.kinds[part]
            starts[made] = at
            counts[made] = splits.operands[part]
            for k in range(begin, end_given):
                source = given[k]
                args[at] = whole[source] if source >= 0 else part_ids[parts[s] - 1 - source]
                at += 1
        if splits.core[s] >= 0:
            cores[node - first] = part_ids[parts[s] + splits.core[s]]
            split_of[node - first] = s
    return n, n_args


@compiled(small=True)
def _shared_parts(shared: np.ndarray, args: np.ndarray) -> np.ndarray:
    """Room for the nodes of parts that are shared: [parts, integers], -1 where none is made."""
    largest = -1
    if len(shared) and shared.max() >= 0:
        for at in range(len(args)):
            if args[at] < MOST_INTEGERS:
                largest = max(largest, args[at])
    return np.full((shared.max() + 1 if len(shared) else 0, largest + 1), -1, np.int32)


@compiled(small=True)
def repeats(columns: Columns, n_types: int, kinds: np.ndarray, asked: np.ndarray, most: float) -> np.ndarray:
    """Whether at most that share of the integers of a type's nodes are different, for the types that are asked for."""
    types, starts, counts, args = NodeColumns(*columns)
    number = np.full(n_types, -1, np.int32)
    largest = -1
    for its in range(len(kinds)):
        if asked[its]:
            number[kinds[its]] = its
    for i in range(len(types)):
        if number[types[i]] >= 0:
            largest = max(largest, args[starts[i] + counts[i]])
    found = np.zeros(len(kinds), np.bool_)
    if largest >= MOST_INTEGERS:
        return found
    seen = np.zeros((len(kinds), largest + 1), np.bool_)
    total = np.zeros(len(kinds), np.int64)
    for i in range(len(types)):
        its = number[types[i]]
        if its >= 0:
            total[its] += 1
            seen[its, args[starts[i] + counts[i]]] = True
    for its in range(len(kinds)):
        found[its] = total[its] > 0 and seen[its].sum() <= most * total[its]
    return found
