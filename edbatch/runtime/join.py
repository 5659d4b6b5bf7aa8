"""One piece of all chunks that a graph recorded, among them recordings that are appended again."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import INT32, INT64, array_at


@compiled(small=True)
def join_chunks(
    first: int, rows: np.ndarray, bases: np.ndarray, other_types: np.ndarray, other_args: np.ndarray,
    types: np.ndarray, args: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the types and integers of nodes.

    Args:
        first: the id of the first node.
        rows, bases, other_types, other_args: see `graph.columns.Pieces`.
        types, args: of all nodes.
    """
    at, arg_at, base, other, other_arg = 0, 0, 0, 0, 0
    for row in range(len(rows)):
        n, n_args, address, codes_address, n_bases = (
            rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4],
        )  # fmt: skip
        if address == 0:
            types[at : at + n] = other_types[other : other + n]
            args[arg_at : arg_at + n_args] = other_args[other_arg : other_arg + n_args]
            other += n
            other_arg += n_args
        else:
            given = array_at(address, n_args, INT64)
            small = array_at(codes_address, n + n_args, INT32)
            types[at : at + n] = small[:n]
            codes, found, start = small[n:], args[arg_at : arg_at + n_args], first + at
            if n_bases == 0:
                for i in range(n_args):  # several at a time
                    found[i] = given[i] + codes[i] * start
            else:
                for i in range(n_args):
                    value = given[i]
                    if codes[i] == 1:
                        value += start
                    elif codes[i] > 1:
                        value += bases[base + codes[i] - 2]
                    found[i] = value
        base += n_bases
        at += n
        arg_at += n_args
