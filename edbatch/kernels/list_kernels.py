"""Kernels of lists of rows, in the kernel language: reductions, and how they share out a gradient.

Place 0 has the rows that come first in the batch's operands, the last place what is computed; the list axis is the
second. Devices differ in how wide the numbers of lists and offsets are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, SAME, Count, Kernel, Load, Place, Store

_ENTRY = (NEXT, SAME)  # of a row: the same for all elements of its list

#: Per op, an entry of the result: of the entries x of a list of so many.
REDUCTIONS = {
    "sum_list": "sum(x)",
    "mean_list": "sum(x) / count",
    "maximum_list": "max(x)",
    "minimum_list": "min(x)",
    # Entries of -inf contribute nothing, all of them give -inf.
    "logsumexp_list": """
top = max(x)
shift = top if abs(top) < inf else 0
log(sum(exp(x - shift))) + shift
""",
}


@cache
def reduce_lists(op: str, dtype: str, index_bits: int) -> Kernel:
    """Lists of rows, elements of place 0, reduced as `op` does; to place 1."""
    make = Builder()
    value = make.expression(REDUCTIONS[op], x=make.add(Load(0, _ENTRY)), count=make.add(Count(1)))
    places = (Place(True), Place())
    return Kernel(1, 1, places, make.instructions, (Store(value, 1, _ENTRY),), 1, dtype, index_bits)


@cache
def divide_rows(dtype: str, index_bits: int) -> Kernel:
    """Each row of place 0 divided by the length of its list; to place 1."""
    make = Builder()
    value = make.expression("x / count", x=make.add(Load(0, _ENTRY)), count=make.add(Count(1)))
    return Kernel(1, 1, (Place(), Place()), make.instructions, (Store(value, 1, _ENTRY),), 1, dtype, index_bits)


def share_rows(weight: Callable[[Builder, int, int], int], divided: bool, dtype: str, index_bits: int) -> Kernel:
    """Of each element of lists, x in place 0, the part of its list's gradient that it gets; to place 3.

    Places 1 and 2 have the gradient and the result of each list.

    Args:
        weight: of the result and x, the weight of x.
        divided: whether weights are divided by their sum over the list.
    """
    make = Builder()
    x, gradient, result = (make.add(Load(place, _ENTRY)) for place in range(3))
    part = weight(make, result, x)
    if divided:
        gradient = make.compute("divide", gradient, make.reduce("sum", part))
    value = make.compute("multiply", gradient, part)
    if divided:  # an infinite gradient times a part of 0 would be NaN
        value = make.compute("select", part, value, make.number(0.0))
    places = (Place(True), Place(), Place(), Place(True))
    outer = 1 if divided else 2  # without a sum each entry is computed by itself
    return Kernel(outer, 2 - outer, places, make.instructions, (Store(value, 3, _ENTRY),), 1, dtype, index_bits)
