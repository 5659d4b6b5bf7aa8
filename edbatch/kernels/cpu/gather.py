"""Gathers: rows from anywhere, copied side by side.

All is in bytes, a multiple of 4 of them: rows are copied by words of 4 bytes, entries of float32 or halves of float64.
Arrays that Numba indexes with signed numbers would be tested for counting from the end, which keeps the inner loop from
being vectorised (measured: 2.5 GB/s, without the test 20 GB/s).
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import words_at
from edbatch.kernels.tables import Rows

WORD = 4


@compiled(error_model="numpy")
def copy_rows(n: int, source: Rows, target: Rows) -> None:
    """target row i = source row i, of the target's width; a stride of 0 repeats one row."""
    words = target.width // WORD
    for i in range(n):
        read, written = words_at(source.address + i * source.stride), words_at(target.address + i * target.stride)
        for j in range(words):
            written[j] = read[j]


@compiled(error_model="numpy")
def gather_rows(n: int, source: Rows, rows: np.ndarray, begin: int, target: Rows) -> None:
    """target row i = source row rows[begin + i], of the target's width."""
    words = target.width // WORD
    for i in range(n):
        read = words_at(source.address + rows[begin + i] * source.stride)
        written = words_at(target.address + i * target.stride)
        for j in range(words):
            written[j] = read[j]


@compiled(error_model="numpy")
def gather_rows_to(n: int, source: Rows, rows: np.ndarray, begin: int, to: int, target: Rows) -> None:
    """target row rows[to + i] = source row rows[begin + i], of the target's width."""
    words = target.width // WORD
    for i in range(n):
        read = words_at(source.address + rows[begin + i] * source.stride)
        written = words_at(target.address + rows[to + i] * target.stride)
        for j in range(words):
            written[j] = read[j]
