"""Arenas, and windows: the ways to look at an arena's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.memory.pool import BufferPool

# A view of a view of a view ... is resolved when planning; past this depth it is copied instead, so that a chain
# of thousands of views costs thousands of copies and not thousands of nested windows.
MAX_DEPTH = 8


@dataclass
class Arena:
    """Rows of one shape and dtype: [capacity, *shape], of which `rows` are in use; grows by doubling."""

    shape: tuple[int, ...]
    dtype: np.dtype
    width: int  # entries of one row
    rows: int = 0
    flat: Any = None  # the buffer, one-dimensional
    array: Any = None  # the same buffer as [capacity, *shape]


@dataclass(frozen=True)
class Window:
    """The rows of an arena as a chain of views shows them: [rows, *shape].

    Args:
        arena: number of the arena.
        view: from the arena's array to the window's array.
        depth: number of views in the chain.
        column, width: where a row's entries lie in the arena's row; width 0 when they are not contiguous.
        entries: of one row as seen.
    """

    arena: int
    view: Callable[[Any], Any]
    depth: int
    column: int
    width: int
    entries: int


def contiguous_columns(whole: Any, part: Any) -> tuple[int, int] | None:
    """(first column, width) of `part` in the rows of `whole`, (0, 0) if not contiguous, None if it is a copy."""
    if not np.may_share_memory(whole, part):
        return None
    if not part[0].flags.c_contiguous or part.strides[0] != whole.strides[0]:
        return 0, 0
    start = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return start // whole.itemsize, part[0].size


class Arenas:
    """The memory of one graph.

    Window w < 2**31 is known by its number; every arena has a window that shows it as it is. Window arrays are views
    and stay valid until their arena grows.
    """

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self.arenas: list[Arena] = []
        self.windows: list[Window] = []
        self._by_spec: dict[tuple[tuple[int, ...], np.dtype], int] = {}
        self._arrays: list[Any] = []

    def arena_of(self, shape: tuple[int, ...], dtype: np.dtype) -> int:
        """Number of the window that shows the arena for this shape and dtype."""
        found = self._by_spec.get((shape, dtype))
        if found is None:
            width = int(np.prod(shape, dtype=np.int64))
            self.arenas.append(Arena(shape, dtype, width))
            found = self._add(Window(len(self.arenas) - 1, lambda array: array, 0, 0, width, width))
            self._by_spec[shape, dtype] = found
        return found

    def look(self, window: int, view: Callable[[Any], Any]) -> int:
        """Number of the window that shows `view` of another window; -1 if that takes a copy or the chain is too long."""
        parent = self.windows[window]
        arena = self.arenas[parent.arena]
        whole = np.empty((2, *arena.shape), arena.dtype)
        seen = view(parent.view(whole))
        columns = contiguous_columns(whole, seen)
        if columns is None or parent.depth == MAX_DEPTH:
            return -1
        both = Window(parent.arena, lambda array: view(parent.view(array)), parent.depth + 1, *columns, seen[0].size)
        return self._add(both)

    def array(self, window: int) -> Any:
        """The window's array [capacity, *shape]."""
        found = self._arrays[window]
        if found is None:
            seen = self.windows[window]
            found = self._arrays[window] = seen.view(self.arenas[seen.arena].array)
        return found

    def reserve(self, window: int, rows: int) -> None:
        """Make room for `rows` rows in all in the arena of `window`; keeps what is there."""
        number = self.windows[window].arena
        arena = self.arenas[number]
        if arena.array is None or rows > len(arena.array):
            old = arena.flat
            arena.flat = self._pool.acquire(max(rows, 2 * arena.rows) * arena.width, arena.dtype)
            if old is not None:
                arena.flat[: arena.rows * arena.width] = old[: arena.rows * arena.width]
                self._pool.release(old)
            capacity = len(arena.flat) // arena.width
            arena.array = arena.flat[: capacity * arena.width].reshape(capacity, *arena.shape)
            for at, seen in enumerate(self.windows):
                if seen.arena == number:
                    self._arrays[at] = None
        arena.rows = rows

    def release(self) -> None:
        """Give all buffers back to the pool."""
        for arena in self.arenas:
            if arena.flat is not None:
                self._pool.release(arena.flat)
                arena.flat = arena.array = None
        self._arrays = [None] * len(self._arrays)

    @property
    def bytes(self) -> int:
        """Bytes of the rows in use."""
        return sum(arena.rows * arena.width * arena.dtype.itemsize for arena in self.arenas)

    def _add(self, window: Window) -> int:
        self.windows.append(window)
        self._arrays.append(None)
        return len(self.windows) - 1
