"""One piece of all chunks that a graph recorded, among them recordings that are appended again."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import INT32, INT64, array_at
from edbatch.memory.plan.columns import Columns


@compiled(small=True)
def join_chunks(
    first: int, rows: np.ndarray, bases: np.ndarray, others: Columns, types: np.ndarray, operands: np.ndarray,
    integers: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the types, operands and integers of nodes.

    Args:
        first: the id of the first node.
        rows, bases: see `graph.columns.Pieces`.
        others: types, operands and integers of all chunks that are no recordings.
        types, operands, integers: of all nodes.
    """
    at, other = np.zeros(3, np.int64), np.zeros(3, np.int64)  # nodes, operands, integers
    base = 0
    for row in range(len(rows)):
        n, n_operands, n_integers, n_bases = rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3]
        node, operand, integer = at
        found, numbers = operands[operand : operand + n_operands], integers[integer : integer + n_integers]
        if rows[row, 5] == 0:
            types[node : node + n] = others[0][other[0] : other[0] + n]
            found[:] = others[1][other[1] : other[1] + n_operands]
            numbers[:] = others[2][other[2] : other[2] + n_integers]
            other += rows[row, :3]
        else:
            given = array_at(rows[row, 5], n_operands + n_integers, INT64)
            small = array_at(rows[row, 6], n + n_operands + n_integers, INT32)
            types[node : node + n] = small[:n]
            _add(given[:n_operands], small[n : n + n_operands], int(first + node), bases[base : base + n_bases], found)
            _add(given[n_operands:], small[n + n_operands :], 0, bases[base : base + n_bases], numbers)
        base += n_bases
        at += rows[row, :3]


@compiled(small=True)
def _add(given: np.ndarray, codes: np.ndarray, start: int, bases: np.ndarray, found: np.ndarray) -> None:
    """Add to each integer nothing, the id of the first node, or one of the bases, as its code says."""
    if len(bases) == 0:
        for i in range(len(given)):  # several at a time
            found[i] = given[i] + codes[i] * start
        return
    for i in range(len(given)):
        value = given[i]
        if codes[i] == 1:
            value += start
        elif codes[i] > 1:
            value += bases[codes[i] - 2]
        found[i] = value
