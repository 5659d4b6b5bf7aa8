"""Gathers: rows from anywhere, copied side by side.

Positions are unsigned: Numba lets signed ones count from the end, and the test for that keeps the inner loop from
being vectorised (measured: 2.5 GB/s, with unsigned ones 20 GB/s).
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64


@njit(cache=True, error_model="numpy")
def gather_rows(
    source: np.ndarray,
    source_width: int,
    source_column: int,
    indices: np.ndarray,
    begin: int,
    n: int,
    target: np.ndarray,
    target_width: int,
    target_column: int,
    width: int,
) -> None:
    """target row i [width entries from target_column] = source row indices[begin + i] [from source_column].

    `source` and `target` are flat buffers; `target_column` counts from the start of the buffer, so that it also says
    where the first row is.
    """
    entries = uint64(width)
    for i in range(n):
        s = uint64(indices[begin + i] * source_width + source_column)
        t = uint64(i * target_width + target_column)
        for j in range(entries):
            target[t + j] = source[s + j]


@njit(cache=True, error_model="numpy")
def gather_rows_to(
    source: np.ndarray,
    source_width: int,
    source_column: int,
    indices: np.ndarray,
    begin: int,
    to: int,
    n: int,
    target: np.ndarray,
    target_width: int,
    target_column: int,
    width: int,
) -> None:
    """Like `gather_rows`, but source row indices[begin + i] goes to target row indices[to + i]."""
    entries = uint64(width)
    for i in range(n):
        s = uint64(indices[begin + i] * source_width + source_column)
        t = uint64(indices[to + i] * target_width + target_column)
        for j in range(entries):
            target[t + j] = source[s + j]
