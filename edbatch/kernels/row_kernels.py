"""Kernels of whole rows, in the kernel language."""

from __future__ import annotations

from functools import cache

from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, RUN, SAME, Kernel, Load, Place, Store

_ENTRY = (NEXT, SAME)  # one for a whole list


@cache
def copy_rows(dtype: str) -> Kernel:
    """Rows of place 0 copied to rows of place 1; both may be listed.

    Example:
        >>> copy_rows("float64").stores[0].add
        False
    """
    return Kernel(1, 0, (Place(), Place()), (Load(0, (NEXT,)),), (Store(0, 1, (NEXT,)),), dtype=dtype)


@cache
def add_rows(dtype: str) -> Kernel:
    """Rows of place 0 added to rows of place 1, one after the other; both may be listed.

    Example:
        >>> add_rows("float64").stores[0].add
        True
    """
    return Kernel(1, 0, (Place(), Place()), (Load(0, (NEXT,)),), (Store(0, 1, (NEXT,), add=True),), dtype=dtype)


@cache
def add_lists(dtype: str) -> Kernel:
    """The sums of lists of rows, elements of place 0, added to rows of place 1: all to one row, if there is one list.

    Example:
        >>> add_lists("float32").list_axis
        1
    """
    make = Builder()
    total = make.reduce("sum", make.add(Load(0, _ENTRY)))
    value = make.compute("add", make.add(Load(1, _ENTRY)), total)
    return Kernel(1, 1, (Place(True), Place()), make.instructions, (Store(value, 1, _ENTRY),), 1, dtype)


@cache
def read_scattered(dtype: str, axes: int, last: int) -> Kernel:
    """Rows of place 0, whose entries lie anywhere, copied to rows of place 1, where they lie side by side.

    Args:
        dtype: of the entries.
        axes: of a row.
        last: how far apart neighbours along the last axis are: NEXT or RUN.

    Example:
        >>> read_scattered("float32", 2, RUN).stores[0].strides == (RUN, NEXT)
        True
    """
    there, here = _strides(axes, last), _strides(axes, NEXT)
    return Kernel(axes, 0, (Place(), Place()), (Load(0, there),), (Store(0, 1, here),), dtype=dtype)


@cache
def add_scattered(dtype: str, axes: int, last: int) -> Kernel:
    """The other way round: rows of place 0 added to those of place 1, one after the other.

    Example:
        >>> add_scattered("float32", 2, RUN).stores[0].strides == (RUN, RUN)
        True
    """
    there, here = _strides(axes, last), _strides(axes, NEXT)
    return Kernel(axes, 0, (Place(), Place()), (Load(0, here),), (Store(0, 1, there, add=True),), dtype=dtype)


@cache
def add_lists_scattered(dtype: str, axes: int, last: int) -> Kernel:
    """As `add_lists`, to rows whose entries lie anywhere.

    Example:
        >>> add_lists_scattered("float32", 2, RUN).list_axis
        2
    """
    there, here = (*_strides(axes, last), SAME), (*_strides(axes, NEXT), SAME)
    make = Builder()
    total = make.reduce("sum", make.add(Load(0, here)))
    value = make.compute("add", make.add(Load(1, there)), total)
    return Kernel(axes, 1, (Place(True), Place()), make.instructions, (Store(value, 1, there),), axes, dtype)


def _strides(axes: int, last: int) -> tuple[int, ...]:
    return (*(RUN,) * (axes - 1), last)
