"""Sums over any number of rows each, read where they lie."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.pointers import floats_at

BYTES = 4  # of an entry, float32


@compiled(error_model="numpy")
def add_row(source: int, target: int, width: int) -> None:
    """target [width] += source."""
    read, written = floats_at(source), floats_at(target)
    for j in range(width):
        written[j] += read[j]


@compiled(error_model="numpy")
def fill_rows(n: int, target: int, stride: int, width: int) -> None:
    """Zeros in n rows."""
    written = floats_at(target)
    for i in range(n):
        for j in range(width):
            written[i * stride + j] = 0.0


@compiled(error_model="numpy")
def sum_even(
    n: int, indices: np.ndarray, offsets: int, source: int, source_stride: int, target: int, stride: int, width: int
) -> None:
    """target row i = the sum of source rows from indices[offsets + i] up to indices[offsets + i + 1]."""
    fill_rows(n, target, stride, width)
    for i in range(n):
        for k in range(indices[offsets + i], indices[offsets + i + 1]):
            add_row(source + BYTES * k * source_stride, target + BYTES * i * stride, width)


@compiled(error_model="numpy")
def sum_gathered(
    n: int,
    indices: np.ndarray,
    offsets: int,
    rows: int,
    source: int,
    source_stride: int,
    target: int,
    stride: int,
    width: int,
) -> None:
    """As `sum_even`, of source rows indices[rows + k] instead of k."""
    fill_rows(n, target, stride, width)
    for i in range(n):
        for k in range(indices[offsets + i], indices[offsets + i + 1]):
            add_row(source + BYTES * indices[rows + k] * source_stride, target + BYTES * i * stride, width)


@compiled(error_model="numpy")
def add_some(
    count: int,
    indices: np.ndarray,
    rows: int,
    positions: int,
    owners: np.ndarray,
    source: int,
    source_stride: int,
    target: int,
    stride: int,
    width: int,
) -> None:
    """target row owners[indices[positions + e]] += source row indices[rows + e], for every e below `count`."""
    for e in range(count):
        to = owners[indices[positions + e]]
        add_row(source + BYTES * indices[rows + e] * source_stride, target + BYTES * to * stride, width)


@compiled(error_model="numpy")
def add_all(n: int, source: int, source_stride: int, target: int, width: int) -> None:
    """target [width] += the sum of n source rows, one after the other."""
    for i in range(n):
        add_row(source + BYTES * i * source_stride, target, width)


@compiled(error_model="numpy")
def add_each(n: int, source: int, source_stride: int, to: np.ndarray, target: int, width: int) -> None:
    """target row to[i] [width] += source row i, one after the other."""
    for i in range(n):
        add_row(source + BYTES * i * source_stride, target + BYTES * to[i] * width, width)
