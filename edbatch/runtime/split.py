"""Splitting cells around recurrences and look-ups: what waits for what is what a mini-batch's own graph says.

An operand carries a recurrence if it depends, over any nodes, on a node of the same type, or is fed by what feeds such
an operand; the cell's other operands are at hand before. That is decided for all nodes of a type together, and from
what is pending alone, so that the same graph always gives the same parts.

Where no recurrence waits (its rows are best in its own order), large products of what is looked up alone are computed
once for all nodes that look up the same: half the words of a mini-batch are repeats. Only parts that were split off are
shared; nodes that a user holds have values and gradients of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.graph.cell.passes.split_stages import EARLY
from edbatch.graph.cell.split import Split, in_core, split_type
from edbatch.graph.cell.type_body import outputs_seen
from edbatch.graph.views import NODE_BITS
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.split_loops import SplitColumns, make_parts
from edbatch.runtime.split_reasons import found_out
from edbatch.runtime.type_table import TypeTable

MAX_REMEMBERED = 1000
# A cell that is in no recurrence is split for its look-ups' sake if at most so much of them are different.
MOST_DISTINCT = 0.75


class Splits(NamedTuple):
    """How the nodes of some types are split.

    Attributes:
        new_nodes, new_args: per type that may be split and is present, how many a node of it is given room for.
        columns: what is made of the nodes.
    """

    new_nodes: np.ndarray
    new_args: np.ndarray
    columns: SplitColumns


def split_nodes(nodes: Nodes, integers: np.ndarray, first: int, table: TypeTable) -> None:
    """Split the nodes from `first` on whose cells stand in a recurrence; the parts' nodes are added after the last."""
    if not table.any_split:
        return
    n, n_args = nodes.n, nodes.n_args
    candidates, times, recurrent, read, looking = found_out(
        first, integers, nodes.directory, table.directory, table.has_late, table.looks_up, MOST_DISTINCT
    )
    if not len(candidates):
        return
    key = candidates.tobytes(), recurrent.tobytes(), read.tobytes(), looking.tobytes()
    if key not in table.splits:
        if len(table.splits) >= MAX_REMEMBERED:
            table.splits.clear()
        splits = recurrent.any() or looking.any()
        table.splits[key] = _new_splits(table, candidates, recurrent, read, looking) if splits else None
    found: Splits | None = table.splits[key]
    if found is None:
        return
    nodes.reserve(int(times @ found.new_nodes), int(times @ found.new_args))
    nodes.n, nodes.n_args = make_parts(first, n, n_args, integers, nodes.directory, tuple(found.columns))


def _new_splits(
    table: TypeTable, candidates: np.ndarray, recurrent: np.ndarray, read: np.ndarray, looking: np.ndarray
) -> Splits | None:
    found: dict[int, Split] = {}  # by number among the candidates
    for number, kind in enumerate(candidates.tolist()):
        type = table.bound[kind].type
        eager = frozenset(np.flatnonzero(~recurrent[number, : len(type.operands)]).tolist())
        needed = frozenset(range(len(type.op.codes)))
        if table.has_late[kind]:
            codes = np.flatnonzero(read[number] > 1).tolist()
            needed = frozenset(output for code in codes for output in outputs_seen(type, code))
        if looking[number]:
            split = split_type(type, frozenset(), frozenset(range(len(type.op.codes))))
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
    return Splits(
        new_nodes=np.array([max(0, len(parts) - 1) for parts in parts_of]),
        new_args=np.array([sum(len(part.given) for part in parts) for parts in parts_of]),
        columns=SplitColumns(
            split=split_of,
            width=np.array([table.n_operands[kind] + table.n_integers[kind] for kind in chosen], np.int32),
            parts=np.cumsum([0] + [len(split.parts) for split in found.values()]).astype(np.int32),
            kinds=kinds,
            operands=np.array([len(part.body.arguments) for part in parts], np.int32),
            given_begin=np.cumsum([0] + [len(part.given) for part in parts]).astype(np.int32),
            given=np.array([source for part in parts for source in part.given], np.int32),
            core=core,
            codes=codes_of,
            shared=np.where(shared, np.cumsum(shared) - 1, -1).astype(np.int32),
        ),
    )
