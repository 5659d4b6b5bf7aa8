"""Kernels of whole rows, in the kernel language."""

from __future__ import annotations

from functools import cache

from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, SAME, Kernel, Load, Place, Store

_ENTRY = (NEXT, SAME)  # one for a whole list


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
