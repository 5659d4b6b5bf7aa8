"""How the entries of values are numbered, and where in memory those lie that a node reads.

Entries are numbered row by row. So the axes of a value may be divided and joined without another numbering, and values
of different shapes have entries side by side: what a reshape shows is the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from edbatch.graph.spec import Shape
from edbatch.graph.views import View

Strides = tuple[int, ...]


def by_rows(shape: Sequence[int]) -> Strides:
    """Entries between neighbours along each axis, where entries lie as they are numbered.

    Example:
        >>> by_rows((2, 3, 4))
        (12, 4, 1)
    """
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(strides[::-1])


def with_gaps(shape: Shape) -> Strides:
    """Strides of which no two count on from one another: of a parameter, of which it is not known yet how it lies.

    Nor do those of every k-th entry: so many steps of k are less than twice as far as an axis is long.

    Example:
        >>> with_gaps((2, 3))
        (1, 5)
    """
    return tuple(math.prod(2 * size + 1 for size in shape[:axis]) for axis in range(len(shape)))


def shown(look: Callable[[Any], Any], shape: Shape, strides: Strides) -> tuple[Shape, Strides, int]:
    """What a look at a value shows: shape and strides, and how far from the value's first entry the first one is.

    Args:
        look: takes no copy of what lies so.
        shape, strides: of the value.
    """
    return parts_shown(lambda whole: [look(whole)], shape, strides)[0]


def seen(view: View | None, shape: Shape, strides: Strides) -> tuple[Shape, Strides, int]:
    """The same of a view of a value; None: the value as it is."""
    if view is None:
        return shape, strides, 0
    if strides == by_rows(shape):
        return view.out.shape, view.strides, view.first
    return shown(view.look, shape, strides)


def parts_shown(looks: Callable[[Any], list[Any]], shape: Shape, strides: Strides) -> list[tuple[Shape, Strides, int]]:
    """The same of several looks, which one function takes at once."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    whole = as_strided(np.empty(span, np.int8), (1, *shape), (span, *strides))
    first = whole.__array_interface__["data"][0]
    return [(seen.shape[1:], seen.strides[1:], seen.__array_interface__["data"][0] - first) for seen in looks(whole)]


def in_order(view: View | None) -> bool:
    """Whether a view shows all entries in their order, be it in another shape."""
    return view is None or view.in_order


def broadcast(shape: Shape, strides: Strides, to: Shape) -> Strides:
    """Strides along the axes of `to`, as NumPy broadcasts."""
    own = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    return (*[0] * (len(to) - len(own)), *own)


def along(shape: Sequence[int], strides: Sequence[int], sizes: Sequence[int]) -> Strides | None:
    """From strides along the axes of `shape` to those along axes of other `sizes`, of as many entries.

    Returns:
        None: along one of these axes, entries do not lie evenly.

    Example:
        >>> along((4, 3), (3, 1), (2, 6)), along((4, 3), (1, 4), (2, 2, 3)), along((4, 3), (1, 4), (12,))
        ((6, 1), (2, 1, 4), None)
    """
    axes: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if axes and axes[-1][1] == stride * size:  # one axis with that before it
            axes[-1] = axes[-1][0] * size, stride
        elif size != 1:
            axes.append((size, stride))
    found: list[int] = []
    for whole in reversed(sizes):
        covered, first = 1, 0
        while covered < whole:
            size, stride = axes.pop()
            part = whole // covered
            if covered > 1 and stride != first * covered:
                return None
            first = stride if covered == 1 else first
            if size > part:
                if size % part:
                    return None
                axes.append((size // part, stride * part))
                size = part
            if part % size:
                return None
            covered *= size
        found.append(first)
    return tuple(reversed(found))


def breaks(shape: Sequence[int], accesses: Collection[Sequence[int]]) -> list[int]:
    """Where axes have to be told apart: per such place, the entries of the axes after it.

    Args:
        shape: of what is gone through.
        accesses: strides along its axes.

    Example:
        >>> breaks((2, 3, 4), [(12, 4, 1), (1, 0, 0)])
        [12]
    """
    found: list[int] = []
    if len(shape) < 2:
        return found
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    for outer, inner in pairwise(axes):
        if any(strides[outer] != strides[inner] * shape[inner] for strides in accesses):
            found.append(math.prod(shape[outer + 1 :]))
    return found


def divided(sizes: Sequence[int], breaks: Collection[int]) -> list[list[int]] | None:
    """Axes divided at more places: per axis of `sizes` the sizes of its parts; None if that does not come out even.

    Example:
        >>> divided((2, 12), [4]), divided((2, 12), [3, 4])
        ([[2], [3, 4]], None)
    """
    if not breaks:
        return [[size] for size in sizes]
    found: list[list[int]] = []
    after = 1
    for size in reversed(sizes):
        parts: list[int] = []
        inside = sorted(place for place in breaks if after < place < after * size)
        for end in [*inside, after * size]:
            begin = after * math.prod(parts)
            if end % begin:
                return None
            parts.insert(0, end // begin)
        found.insert(0, parts)
        after *= size
    return found
