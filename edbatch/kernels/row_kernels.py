"""Kernels of whole rows, in the kernel language."""

from __future__ import annotations

from functools import cache

import numpy as np

from edbatch.kernels.backend import Backend
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, RUN, SAME, Kernel, Load, Place, Store
from edbatch.kernels.program import ADD_ROWS, Dispatch


@cache
def copy_rows(dtype: str, axes: int = 1, last: int = NEXT) -> Kernel:
    """Rows of place 0 copied to rows of place 1, where their entries lie side by side; both may be listed.

    Args:
        dtype: of the entries.
        axes: of a row.
        last: how far apart, in place 0, neighbours along the last axis are: NEXT or RUN. Along others: anywhere.
    """
    there, here = _strides(axes, last), _strides(axes, NEXT)
    return Kernel(axes, 0, (Place(), Place()), (Load(0, there),), (Store(0, 1, here),), dtype=dtype)


@cache
def add_rows(dtype: str, axes: int = 1, last: int = NEXT) -> Kernel:
    """The other way round: rows of place 0, side by side, added to those of place 1, one after the other."""
    there, here = _strides(axes, last), _strides(axes, NEXT)
    return Kernel(axes, 0, (Place(), Place()), (Load(0, here),), (Store(0, 1, there, add=True),), dtype=dtype)


@cache
def add_lists(dtype: str, axes: int = 1, last: int = NEXT) -> Kernel:
    """The sums of lists of rows, elements of place 0, added to rows of place 1: all to one row of one list."""
    there, here = (*_strides(axes, last), SAME), (*_strides(axes, NEXT), SAME)
    make = Builder()
    total = make.reduce("sum", make.add(Load(0, here)))
    value = make.compute("add", make.add(Load(1, there)), total)
    return Kernel(axes, 1, (Place(True), Place()), make.instructions, (Store(value, 1, there),), axes, dtype)


@cache
def sum_lists(dtype: str) -> Kernel:
    """The sums of lists of rows, elements of place 0, each in a row of place 1."""
    make = Builder()
    total, entry = make.reduce("sum", make.add(Load(0, (NEXT, SAME)))), (NEXT, SAME)
    return Kernel(1, 1, (Place(True), Place()), make.instructions, (Store(total, 1, entry),), 1, dtype)


def adding_rows(dtype: np.dtype, backend: Backend) -> Dispatch:
    """What adds rows to rows, in the place of a program."""
    return Dispatch(ADD_ROWS, dtype.itemsize, *backend.handles([make(dtype.name) for make in (add_rows, add_lists)]))


def _strides(axes: int, last: int) -> tuple[int, ...]:
    return (*(RUN,) * (axes - 1), last)
