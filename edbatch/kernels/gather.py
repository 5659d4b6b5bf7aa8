"""Gathers: rows from anywhere, copied side by side.

Memory is given by address, positions and distances in words of 4 bytes: entries of float32, halves of float64. Arrays
that Numba indexes with signed numbers would be tested for counting from the end, which keeps the inner loop from being
vectorised (measured: 2.5 GB/s, without the test 20 GB/s).
"""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.pointers import words_at


@compiled(error_model="numpy")
def copy_rows(n: int, source: int, source_stride: int, target: int, target_stride: int, width: int) -> None:
    """target row i = source row i [width]; a stride of 0 repeats one row."""
    read, written = words_at(source), words_at(target)
    for i in range(n):
        s, t = i * source_stride, i * target_stride
        for j in range(width):
            written[t + j] = read[s + j]


@compiled(error_model="numpy")
def gather_rows(
    n: int, source: int, source_stride: int, rows: np.ndarray, begin: int, target: int, target_stride: int, width: int
) -> None:
    """target row i = source row rows[begin + i] [width]."""
    read, written = words_at(source), words_at(target)
    for i in range(n):
        s, t = rows[begin + i] * source_stride, i * target_stride
        for j in range(width):
            written[t + j] = read[s + j]


@compiled(error_model="numpy")
def gather_rows_to(
    n: int,
    source: int,
    source_stride: int,
    rows: np.ndarray,
    begin: int,
    to: int,
    target: int,
    target_stride: int,
    width: int,
) -> None:
    """target row rows[to + i] = source row rows[begin + i] [width]."""
    read, written = words_at(source), words_at(target)
    for i in range(n):
        s, t = rows[begin + i] * source_stride, rows[to + i] * target_stride
        for j in range(width):
            written[t + j] = read[s + j]
