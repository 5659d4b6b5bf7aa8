"""Splitting cells around recurrences and look-ups: what waits for what is what a mini-batch's own graph says.

An operand carries a recurrence if it depends, over any nodes, on a node of the same type, or is fed by what feeds such
an operand; the cell's other operands are at hand before. That is decided for all nodes of a type together, and from
what is pending alone, so that the same graph always gives the same parts.

Where no recurrence waits (its rows are best in its own order), large products of what is looked up alone are computed
once for all nodes that look up the same: half the words of a mini-batch are repeats. Only parts that were split off are
shared; nodes that a user holds have values and gradients of their own.
"""

from __future__ import annotations

from operator import mul
from typing import NamedTuple

import numpy as np

from edbatch.compiling.array_table import INT32, INT64, ArrayTable, reader
from edbatch.compiling.compiled import compiled
from edbatch.graph.cell.passes.split_stages import EARLY
from edbatch.graph.cell.split import Split, in_core, split_type
from edbatch.graph.cell.type_body import outputs_seen
from edbatch.graph.views import NODE_BITS
from edbatch.memory.plan.columns import nodes_in
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.split_reasons import MOST_INTEGERS, found_out
from edbatch.runtime.type_table import TypeTable

MAX_REMEMBERED = 1000
# A cell that is in no recurrence is split for its look-ups' sake if at most so much of them are different.
MOST_DISTINCT = 0.75


class SplitColumns(NamedTuple):
    """How the nodes of each type are split.

    Attributes:
        split: per type, the number of its split, or -1.
        width: per split, operands and integers of the whole.
        parts: [splits + 1] where the parts of each split begin.
        kinds, operands, given_begin: per part, its type, its number of operands, and [parts + 1] where `given` begins.
        given: see `passes.split_stages.Part`.
        core: per split, the part that users of the whole read in its place where `codes` says so; -1: the last.
        codes: per split, one for each code of a view of the whole: that of the core; -1 if only the whole has it.
        shared: per part, a number of its own if it depends on an integer alone and is shared by equal ones, else -1.
    """

    split: np.ndarray
    width: np.ndarray
    parts: np.ndarray
    kinds: np.ndarray
    operands: np.ndarray
    given_begin: np.ndarray
    given: np.ndarray
    core: np.ndarray
    codes: np.ndarray
    shared: np.ndarray


splits_in = reader(SplitColumns, *[INT32] * 8, INT64, INT32)


@compiled(small=True)
def make_parts(
    first: int, n: int, n_args: int, integers: np.ndarray, node_tables: np.ndarray, split_tables: np.ndarray
) -> tuple[int, int]:
    """Make parts of the nodes from `first` on, in place; there must be room.

    A node's last part takes its place, the others get new ids; but parts that look up the same are one.

    Args:
        n, n_args: nodes and entries of `args` in use.
        split_tables: directory of `SplitColumns`.

    Returns:
        The same after it.
    """
    types, starts, counts, args, _ = nodes_in(node_tables)
    splits = splits_in(split_tables)
    n_codes = len(splits.codes) // len(splits.core)
    parts, given, shared = splits.parts, splits.given, splits.shared
    made_of = _shared_parts(shared, integers)
    part_ids = np.empty(len(shared), np.int32)
    end = n
    moves = splits.core.max() >= 0
    cores = np.full(end - first if moves else 0, -1, np.int32)  # per node, the part that its users read
    split_of = np.empty(len(cores), np.int32)
    whole = np.empty(max(1, splits.width.max()), np.int64)
    for node in range(first, end):
        if moves:
            for at in range(starts[node], starts[node] + counts[node]):
                source = (args[at] & 0xFFFFFFFF) - first
                if 0 <= source < len(cores) and cores[source] >= 0:
                    code = splits.codes[split_of[source] * n_codes + (args[at] >> 32)]
                    if code >= 0:
                        args[at] = (code << 32) | cores[source]
        s = splits.split[types[node]] if types[node] < len(splits.split) else -1
        if s < 0:
            continue
        at = int(starts[node])
        for k in range(splits.width[s]):
            whole[k] = args[at + k]
        last = parts[s + 1] - 1
        for part in range(parts[s], last + 1):
            begin, end_given = splits.given_begin[part], splits.given_begin[part + 1]
            made = node
            if part < last:
                key = integers[whole[given[begin]]] if shared[part] >= 0 else -1
                is_shared = 0 <= key < made_of.shape[1]
                if is_shared and made_of[shared[part], key] >= 0:
                    part_ids[part] = made_of[shared[part], key]
                    continue
                made = n
                n += 1
                if is_shared:
                    made_of[shared[part], key] = made
            part_ids[part] = made
            if part < last or end_given - begin > splits.width[s]:  # else it has room where the whole was
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
def _shared_parts(shared: np.ndarray, integers: np.ndarray) -> np.ndarray:
    """Room for the nodes of parts that are shared: [parts, integers], -1 where none is made."""
    largest = -1
    if len(shared) and shared.max() >= 0:
        for at in range(len(integers)):
            if integers[at] < MOST_INTEGERS:
                largest = max(largest, integers[at])
    return np.full((shared.max() + 1 if len(shared) else 0, largest + 1), -1, np.int32)


def split_nodes(nodes: Nodes, integers: np.ndarray, first: int, table: TypeTable) -> None:
    """Split the nodes from `first` on whose cells stand in a recurrence; the parts' nodes are added after the last."""
    if not table.any_split:
        return
    n, n_args = nodes.n, nodes.n_args
    candidates, times, recurrent, read, looking = found_out(
        first, integers, nodes.directory, table.facts.entries, MOST_DISTINCT
    )
    if not len(candidates):
        return
    key = candidates.tobytes(), recurrent.tobytes(), read.tobytes(), looking.tobytes()
    if key not in table.splits:
        if len(table.splits) >= MAX_REMEMBERED:
            table.splits.clear()
        splits = recurrent.any() or looking.any()
        table.splits[key] = _new_splits(table, candidates, recurrent, read, looking) if splits else None
    found: tuple[list[int], list[int], ArrayTable[SplitColumns]] | None = table.splits[key]
    if found is None:
        return
    *new, columns = found  # the first: per candidate, how many a node of it is given room for
    nodes.reserve(*(sum(map(mul, times.tolist(), of_each)) for of_each in new))
    nodes.n, nodes.n_args = make_parts(first, n, n_args, integers, nodes.directory, columns.entries)


def _new_splits(
    table: TypeTable, candidates: np.ndarray, recurrent: np.ndarray, read: np.ndarray, looking: np.ndarray
) -> tuple[list[int], list[int], ArrayTable[SplitColumns]] | None:
    found: dict[int, Split] = {}  # by number among the candidates
    for number, kind in enumerate(candidates.tolist()):
        type = table.bound[kind].type
        eager = frozenset(np.flatnonzero(~recurrent[number, : len(type.operands)]).tolist())
        needed = frozenset(range(len(type.op.body.outputs)))
        if table.facts.tables.has_late[kind]:
            codes = np.flatnonzero(read[number] > 1).tolist()
            needed = frozenset(output for code in codes for output in outputs_seen(type, code))
        if looking[number]:
            split = split_type(type, frozenset(), frozenset(range(len(type.op.body.outputs))))
        else:
            split = split_type(type, eager, needed) if recurrent[number].any() else None
        if split is not None:
            found[number] = split
    if not found:
        return None
    kinds = table.number(np.array([type.id for split in found.values() for type in split.types], np.int64))
    chosen = candidates[list(found)]
    split_of = np.full(len(table.bound), -1, np.int32)
    split_of[chosen] = np.arange(len(found))
    core = np.full(len(found), -1, np.int32)
    codes_of = np.full((len(found), read.shape[1]), -1, np.int64)
    for s, (number, split) in enumerate(found.items()):
        if split.core < len(split.types) - 1:
            core[s] = split.core
            for code in np.flatnonzero(read[number]).tolist():
                codes_of[s, code] = in_core(table.bound[chosen[s]].type, split, code)
    table.see(codes_of[codes_of > 0] << NODE_BITS)
    parts = [part for split in found.values() for part in split.parts]
    shared = np.array(
        [looking[number] and part.stage == EARLY for number, split in found.items() for part in split.parts], np.bool_
    )
    parts_of = [found[number].parts if number in found else () for number in range(len(candidates))]
    return (
        [max(0, len(parts) - 1) for parts in parts_of],
        [sum(len(part.given) for part in parts) for parts in parts_of],
        ArrayTable(
            SplitColumns(
                split=split_of,
                width=np.array(
                    [table.facts.tables.n_operands[kind] + table.facts.tables.n_integers[kind] for kind in chosen],
                    np.int32,
                ),
                parts=np.cumsum([0] + [len(split.parts) for split in found.values()]).astype(np.int32),
                kinds=kinds,
                operands=np.array([len(part.body.arguments) for part in parts], np.int32),
                given_begin=np.cumsum([0] + [len(part.given) for part in parts]).astype(np.int32),
                given=np.array([source for part in parts for source in part.given], np.int32),
                core=core,
                codes=codes_of.reshape(-1),
                shared=np.where(shared, np.cumsum(shared) - 1, -1).astype(np.int32),
            )
        ),
    )
