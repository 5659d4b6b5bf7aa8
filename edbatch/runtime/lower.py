"""From recorded columns to integer arrays: operands found, and the graph that the policy sees."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import Columns, NodeColumns, nodes_in, types_in

UNKNOWN = -2  # a type or a view that the table has not seen


@compiled(small=True)
def decode(
    first: int, base: int, integer: int, recorded: np.ndarray, operands: np.ndarray, integers: np.ndarray,
    own_integers: np.ndarray, node_tables: np.ndarray, type_tables: np.ndarray,
) -> int:  # fmt: skip
    """Number the types of nodes, put their operands, and where their integers are, in `args`, and take the integers.

    Args:
        first: the number of the first of these nodes, which are the graph's last.
        base: where in `args` theirs begin.
        integer: where the first of their integers is.
        recorded, operands, integers: theirs, see `graph.columns.Recorded`.
        own_integers: those of the graph, with room.
        node_tables: directory of the `NodeColumns` of the graph; what these nodes are is filled in.
        type_tables: directory of the `TypeColumns`.

    Returns:
        How many operands were read; `UNKNOWN` if the table has to learn something first; anything else but all means
        that the columns are damaged.
    """
    types, starts, counts, args = nodes_in(node_tables)
    known = types_in(type_tables)
    numbers, n_operands, view_windows = known.numbers, known.n_operands, known.view_windows
    n_integers = integer + len(integers)
    for id in recorded:
        if id >= len(numbers) or numbers[id] < 0:
            return UNKNOWN
    for i in range(len(operands)):
        code = operands[i] >> 32
        if code and (code >= len(view_windows) or view_windows[code] < 0):
            return UNKNOWN
    at, to = 0, base
    own_integers[integer:n_integers] = integers
    for node in range(first, len(types)):
        kind = types[node] = numbers[recorded[node - first]]
        n = n_operands[kind]
        if n < 0:
            if at >= len(operands):
                return -1
            n = operands[at]
            at += 1
        starts[node], counts[node] = to, n
        if n < 0 or at + n > len(operands) or integer + known.n_integers[kind] > n_integers:
            return -1
        for j in range(at, at + n):
            if operands[j] & 0xFFFFFFFF >= node:  # not recorded before it
                return -1
            args[to] = operands[j]
            to += 1
        at += n
        for _ in range(known.n_integers[kind]):
            args[to] = integer
            integer += 1
            to += 1
    return at if integer == n_integers else -1


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
