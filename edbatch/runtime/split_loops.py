"""The compiled pass that makes parts of cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, nodes_in

MOST_INTEGERS = 1 << 24  # look-ups of more entries are not compared


class SplitColumns(NamedTuple):
    """How the nodes of each type are split.

    Attributes:
        split: per type, the number of its split, or -1.
        width: per split, operands and integers of the whole.
        parts: [splits + 1] where the parts of each split begin.
        kinds, operands, given_begin: per part, its type, its number of operands, and [parts + 1] where `given` begins.
        given: see `passes.split_stages.Part`.
        core: per split, the part that users of the whole read in its place where `codes` says so; -1: the last.
        codes: [splits, codes] from a view of the whole to one of the core; -1 if only the whole has it.
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


@compiled(small=True)
def make_parts(
    first: int, n: int, n_args: int, integers: np.ndarray, node_tables: np.ndarray, split_columns: Columns
) -> tuple[int, int]:
    """Make parts of the nodes from `first` on, in place; there must be room.

    A node's last part takes its place, the others get new ids; but parts that look up the same are one.

    Args:
        n, n_args: nodes and entries of `args` in use.
        integers: of the graph.
        node_tables: directory of the `NodeColumns` of all nodes, with that room.
        split_columns: the `SplitColumns`.

    Returns:
        Nodes and entries in use after it.
    """
    types, starts, counts, args = nodes_in(node_tables)
    splits = SplitColumns(*split_columns)
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
                    code = splits.codes[split_of[source], args[at] >> 32]
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
