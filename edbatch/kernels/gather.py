"""Gathers: rows from anywhere, copied side by side."""

from __future__ import annotations

from numba import njit


@njit(cache=True, error_model="numpy")
def gather_rows(source, source_width, source_column, indices, begin, n, target, target_width, target_column, width):
    """target row i [width entries from target_column] = source row indices[begin + i] [from source_column].

    `source` and `target` are flat buffers; `target_column` counts from the start of the buffer, so that it also says
    where the first row is.
    """
    for i in range(n):
        s = indices[begin + i] * source_width + source_column
        t = i * target_width + target_column
        for j in range(width):
            target[t + j] = source[s + j]


@njit(cache=True, error_model="numpy")
def gather_rows_to(
    source, source_width, source_column, indices, begin, to, n, target, target_width, target_column, width
):
    """Like `gather_rows`, but source row indices[begin + i] goes to target row indices[to + i]."""
    for i in range(n):
        s = indices[begin + i] * source_width + source_column
        t = indices[to + i] * target_width + target_column
        for j in range(width):
            target[t + j] = source[s + j]
