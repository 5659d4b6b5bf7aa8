"""From recorded columns to integer arrays: operands found, and the graph that the policy sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, NodeColumns

UNKNOWN = -2  # a type or a view that the table has not seen


class KnownTypes(NamedTuple):
    """What a `type_table.TypeTable` knows, in columns of these names."""

    local: np.ndarray
    n_args: np.ndarray
    n_payload: np.ndarray
    view_windows: np.ndarray


@compiled(small=True)
def decode(ids: np.ndarray, first: int, base: int, known: Columns, columns: Columns) -> int:
    """Number the types of nodes, and find where each node's operands start in `args` and how many it has.

    Args:
        ids: per node the id of its type.
        first: the number of the first of these nodes.
        base: where in `args` theirs begin.
        known: the `KnownTypes`.
        columns: the `NodeColumns` of these nodes, with what they read in `args`; the others are filled in.

    Returns:
        Where reading ended in `args`; `UNKNOWN` if the table has to learn something first; anything else but len(args)
        means that the columns are damaged.
    """
    local, n_args, n_payload, view_windows = KnownTypes(*known)
    types, starts, counts, args = NodeColumns(*columns)
    at = base
    for node in range(len(ids)):
        kind = local[ids[node]] if ids[node] < len(local) else -1
        if kind < 0:
            return UNKNOWN
        types[node] = kind
        if n_args[kind] >= 0:
            starts[node] = at
            counts[node] = n_args[kind] - n_payload[kind]
            end = at + n_args[kind]
        else:
            if at >= len(args):
                return -1
            starts[node] = at + 1
            counts[node] = args[at]
            end = at + args[at] + 1
        if end > len(args):
            return -1
        for i in range(starts[node], starts[node] + counts[node]):
            if args[i] & 0xFFFFFFFF >= first + node:  # not recorded before it
                return -1
        for i in range(at, end):
            code = args[i] >> 32
            if code and (code >= len(view_windows) or view_windows[code] < 0):
                return UNKNOWN
        at = end
    return at


@compiled(small=True)
def contract(
    first: int, columns: Columns, is_source: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The graph of what has to be scheduled: no sources, nothing that has run already.

    Args:
        columns: the `NodeColumns` of the nodes from `first` on.

    Returns:
        present: the types that occur, in the order in which the graph has them: their numbers follow from what the
            process has seen, and no order of batches, rows or sums may.
        kinds: per node the place of its type in `present`.
        nodes: its nodes, counted from `first`, by their ids; but an operand with a higher id (a part that was split
            off, see `split_loops`) stands before its first user.
        indptr, operands: their operands, as positions in `nodes`.
    """
    types, starts, counts, args = NodeColumns(*columns)
    position = np.full(len(types), -1, np.int32)
    nodes = np.empty(len(types), np.int32)
    indptr = np.zeros(len(types) + 1, np.int64)
    operands = np.empty(len(args), np.int32)
    n, used = 0, 0
    waiting = np.empty(len(types), np.int32)  # a node, an operand that it waits for, an operand of that ...
    for i in range(len(types)):
        if is_source[types[i]] or position[i] >= 0:
            continue
        depth = 0
        waiting[0] = i
        while depth >= 0:
            node = waiting[depth]
            missing = -1
            for j in range(starts[node], starts[node] + counts[node]):
                operand = (args[j] & 0xFFFFFFFF) - first
                if operand >= 0:
                    if position[operand] >= 0:
                        operands[used] = position[operand]
                        used += 1
                    elif not is_source[types[operand]]:
                        missing = operand
                        break
            if missing >= 0:
                used = indptr[n]
                depth += 1
                waiting[depth] = missing
            else:
                position[node] = n
                nodes[n] = node
                n += 1
                indptr[n] = used
                depth -= 1
    number = np.full(len(is_source), -1, np.int32)
    present = np.empty(len(is_source), np.int32)
    n_present = 0
    kinds = np.empty(n, np.int32)
    for v in range(n):
        kind = types[nodes[v]]
        if number[kind] < 0:
            number[kind] = n_present
            present[n_present] = kind
            n_present += 1
        kinds[v] = number[kind]
    return present[:n_present].copy(), kinds, nodes[:n].copy(), indptr[: n + 1].copy(), operands[:used].copy()


@compiled(small=True)
def with_sources(
    order: np.ndarray, offsets: np.ndarray, types: np.ndarray, is_source: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """A schedule with the sources before it, in a batch for each type, in the order in which the graph has them.

    Args:
        order, offsets: the batches of nodes that are no sources.
        types: per node.
        is_source: per type.

    Returns:
        All nodes batch after batch; where batches begin; the number of batches of sources.
    """
    counts = np.zeros(len(is_source), np.int64)
    present = np.empty(len(is_source), np.int32)
    n_sources, n = 0, 0
    for node in range(len(types)):
        kind = types[node]
        if is_source[kind]:
            if counts[kind] == 0:
                present[n_sources] = kind
                n_sources += 1
            counts[kind] += 1
            n += 1
    whole = np.empty(n + len(order), np.int32)
    begins = np.zeros(n_sources + len(offsets), np.int64)
    next_of = np.zeros(len(is_source), np.int64)
    for batch in range(n_sources):
        kind = present[batch]
        next_of[kind] = begins[batch]
        begins[batch + 1] = begins[batch] + counts[kind]
    for node in range(len(types)):
        kind = types[node]
        if is_source[kind]:
            whole[next_of[kind]] = node
            next_of[kind] += 1
    whole[n:] = order
    begins[n_sources:] = offsets + n
    return whole, begins, n_sources
