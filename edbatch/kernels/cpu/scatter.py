"""Scatter-adds: rows added to rows anywhere, one after the other in their order, so that sums are always the same."""

from __future__ import annotations

import numpy as np
from numba import uint64

from edbatch.compiling.compiled import compiled


@compiled(error_model="numpy")
def add_rows(
    source: np.ndarray,
    source_begin: int,
    source_stride: int,
    n: int,
    target: np.ndarray,
    target_begin: int,
    target_stride: int,
    width: int,
) -> None:
    """target[target_begin + i * target_stride + j] += source[source_begin + i * source_stride + j], j < width, i < n.

    `source` and `target` are flat buffers; with a target stride of 0 all rows are added to one.
    """
    entries = uint64(width)
    if target_stride == 0:
        totals = target[target_begin : target_begin + width].astype(np.float64)  # rounded once, however many rows
        for i in range(n):
            s = uint64(source_begin + i * source_stride)
            for j in range(entries):
                totals[j] += source[s + j]
        target[target_begin : target_begin + width] = totals
        return
    for i in range(n):
        s = uint64(source_begin + i * source_stride)
        t = uint64(target_begin + i * target_stride)
        for j in range(entries):
            target[t + j] += source[s + j]


@compiled(error_model="numpy")
def add_rows_at(
    source: np.ndarray,
    source_begin: int,
    source_stride: int,
    indices: np.ndarray,
    positions: int,
    rows: int,
    n: int,
    target: np.ndarray,
    target_column: int,
    target_width: int,
    width: int,
) -> None:
    """Source row indices[positions + i] (row i for positions < 0) is added to target row indices[rows + i]."""
    entries = uint64(width)
    for i in range(n):
        at = i if positions < 0 else indices[positions + i]
        s = uint64(source_begin + at * source_stride)
        t = uint64(target_column + indices[rows + i] * target_width)
        for j in range(entries):
            target[t + j] += source[s + j]
