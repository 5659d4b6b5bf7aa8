"""Sums over any number of rows each, read where they lie: added up in float64, and rounded once.

So a sum of ten thousand is as exact as one of two, and does not depend on where the rows come from.
"""

from __future__ import annotations

import numpy as np
from numba import float32

from edbatch.compiled import compiled
from edbatch.kernels.pointers import floats_at

BYTES = 4  # of an entry, float32
COLUMNS = 256  # of which the sums are kept in a core's first-level cache


@compiled(error_model="numpy")
def add_row(source: int, target: int, width: int) -> None:
    """target [width] += source."""
    read, written = floats_at(source), floats_at(target)
    for j in range(width):
        written[j] += read[j]


@compiled(error_model="numpy")
def list_rows(
    count: int, indices: np.ndarray, rows: int, positions: int, source: int, source_stride: int, listed: np.ndarray
) -> None:
    """listed[indices[positions + k]] = the address of source row indices[rows + k]; negative: listed[k], row k."""
    for k in range(count):
        row = k if rows < 0 else indices[rows + k]
        listed[k if positions < 0 else indices[positions + k]] = source + BYTES * row * source_stride


@compiled(error_model="numpy")
def sum_lists(
    n: int, indices: np.ndarray, offsets: int, listed: np.ndarray, target: int, stride: int, width: int, mean: bool
) -> None:
    """target row i = the sum of the rows at listed[k], k from indices[offsets + i] up to indices[offsets + i + 1].

    mean: divided by their number.
    """
    totals = np.empty(min(width, COLUMNS), np.float64)
    for i in range(n):
        divisor = float32(indices[offsets + i + 1] - indices[offsets + i] if mean else 1)
        for first in range(0, width, COLUMNS):
            columns = min(COLUMNS, width - first)
            written = floats_at(target + BYTES * (i * stride + first))
            for j in range(columns):
                totals[j] = 0.0
            for k in range(indices[offsets + i], indices[offsets + i + 1]):
                read = floats_at(listed[k] + BYTES * first)
                for j in range(columns):
                    totals[j] += read[j]
            for j in range(columns):
                written[j] = float32(totals[j]) / divisor


@compiled(error_model="numpy")
def divide_rows(
    n: int, indices: np.ndarray, offsets: int, source: int, source_stride: int, target: int, stride: int, width: int
) -> None:
    """target row i = source row i / the number of entries of list i, which is as in `sum_lists`."""
    for i in range(n):
        divisor = float32(indices[offsets + i + 1] - indices[offsets + i])
        read, written = floats_at(source + BYTES * i * source_stride), floats_at(target + BYTES * i * stride)
        for j in range(width):
            written[j] = read[j] / divisor


@compiled(error_model="numpy")
def add_listed(
    n: int, indices: np.ndarray, rows: int, source: int, source_stride: int, target: int, width: int
) -> None:
    """target [width] += the sum of source rows indices[rows + k], k below n; of row k for negative `rows`."""
    totals = np.empty(min(width, COLUMNS), np.float64)
    for first in range(0, width, COLUMNS):
        columns = min(COLUMNS, width - first)
        written = floats_at(target + BYTES * first)
        for j in range(columns):
            totals[j] = written[j]
        for k in range(n):
            row = k if rows < 0 else indices[rows + k]
            read = floats_at(source + BYTES * (row * source_stride + first))
            for j in range(columns):
                totals[j] += read[j]
        for j in range(columns):
            written[j] = float32(totals[j])


@compiled(error_model="numpy")
def add_each(n: int, source: int, source_stride: int, to: np.ndarray, totals: np.ndarray) -> None:
    """Row to[i] of `totals` (float64 [., width]) += source row i."""
    width = totals.shape[1]
    for i in range(n):
        read = floats_at(source + BYTES * i * source_stride)
        at = to[i]
        for j in range(width):
            totals[at, j] += read[j]
