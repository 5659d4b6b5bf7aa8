"""Windows: the ways to look at the rows of arenas."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.records import joined, records
from edbatch.memory.plan.addresses import COLUMNS, Columns

GRADIENT = 1  # from the number of an arena, or a window, of values to that of their gradients; arenas of these are odd


class Window(NamedTuple):
    """The rows of an arena as a chain of views shows them: [rows, *shape].

    Attributes:
        arena: number of the arena.
        view: from the arena's array to the window's array, on the same memory.
        column: where a row's first entry lies in the arena's row.
        shape, strides: of one row as seen; strides in entries.
        contiguous: whether a row's entries lie side by side.
    """

    arena: int
    view: Callable[[Any], Any]
    column: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool

    @property
    def entries(self) -> int:
        """Of one row as seen."""
        return math.prod(self.shape)


def contiguous_columns(whole: Any, part: Any) -> tuple[int, int]:
    """(first column, width) of `part` in the rows of `whole`; (0, 0) if a row of it is not contiguous."""
    if not part[0].flags.c_contiguous or part.strides[0] != whole.strides[0]:
        return 0, 0
    start = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return start // whole.itemsize, part[0].size


class Windows:
    """Arena layouts (a shape and dtype each) and the windows on them, numbered.

    The arena after one of values is that of their gradients, and the window after one of values shows the same of these
    (`GRADIENT`). What a type computes for itself, as the rows of a derivative, has an arena of its own, before one that
    nobody uses.

    It holds no memory: graphs of one model share it, each with `Arenas` of its own.

    Attributes:
        layouts: of the arenas.
        windows: all of them.
        scattered: those of values whose rows have entries that do not lie side by side.
    """

    def __init__(self) -> None:
        self.layouts: list[tuple[tuple[int, ...], np.dtype]] = []
        self.windows: list[Window] = []
        self.scattered: list[Window] = []
        self._plain: dict[tuple[tuple[int, ...], np.dtype], int] = {}
        self._columns = np.zeros(0, COLUMNS)
        self._widths: list[int] = []

    def widths(self) -> list[int]:
        """Per arena the entries of a row."""
        for shape, _ in self.layouts[len(self._widths) :]:
            self._widths.append(math.prod(shape))
        return self._widths

    def columns(self) -> np.ndarray:
        """Per window, a record `Columns`."""
        known = len(self._columns)
        if known < len(self.windows):
            rows = []
            for seen in self.windows[known:]:
                size, number = self.layouts[seen.arena][1].itemsize, -1
                if not seen.contiguous:
                    if seen.arena % 2 == GRADIENT:  # as the window before, which shows the values
                        number = len(self.scattered) - 1
                    else:
                        number = len(self.scattered)
                        self.scattered.append(seen)
                rows.append(Columns(seen.arena, size * seen.column, size * seen.entries, number))
            self._columns = joined(self._columns, records(rows, COLUMNS))
        return self._columns

    def plain(self, shape: tuple[int, ...], dtype: np.dtype) -> int:
        """Number of the window that shows the arena of this layout as it is."""
        found = self._plain.get((shape, dtype))
        if found is None:
            # What is none fails here, with nothing changed: the arenas of every graph would stumble on such a layout.
            if not isinstance(dtype, np.dtype):
                raise TypeError(f"arena of {dtype!r}: expected a dtype")
            self.layouts += [(shape, dtype)] * 2
            strides = tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
            found = self._add(Window(len(self.layouts) - 2, lambda array: array, 0, shape, strides, True))
            # Known from here on: what an interrupt leaves before is a layout that nobody uses.
            self._plain[shape, dtype] = found
        return found

    def look(self, shape: tuple[int, ...], dtype: np.dtype, view: Callable[[Any], Any]) -> int:
        """Number of a new window: the arena of this layout as `view` shows it."""
        arena = self.windows[self.plain(shape, dtype)].arena
        whole = np.empty((2, *shape), dtype)
        seen = view(whole)
        begins = [array.__array_interface__["data"][0] for array in (whole, seen)]
        strides = tuple(stride // whole.itemsize for stride in seen.strides[1:])
        column, contiguous = (begins[1] - begins[0]) // whole.itemsize, bool(seen[0].flags.c_contiguous)
        return self._add(Window(arena, view, column, seen.shape[1:], strides, contiguous))

    def own(self, width: int, dtype: np.dtype) -> int:
        """Number of the window that shows a new arena, whose rows have so many entries."""
        self.layouts += [((width,), dtype)] * 2
        self.windows.append(Window(len(self.layouts) - 2, lambda array: array, 0, (width,), (1,), True))
        return len(self.windows) - 1

    def part(self, window: int, column: int, width: int) -> int:
        """Number of a new window that shows some columns of the rows of an arena that `own` made."""
        arena = self.windows[window].arena
        view = itemgetter((slice(None), slice(column, column + width)))
        self.windows.append(Window(arena, view, column, (width,), (1,), True))
        return len(self.windows) - 1

    def _add(self, seen: Window) -> int:
        """Number of a new window on values; the next one shows their gradients."""
        self.windows += [seen, seen._replace(arena=seen.arena + GRADIENT)]  # both, or none
        return len(self.windows) - 2
