"""Arenas: the memory of one graph, rows of one layout each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.memory.pool import BufferPool
from edbatch.memory.windows import Windows


@dataclass
class Arena:
    """Rows of one shape and dtype.

    Attributes:
        rows: in use.
        width: entries of one row.
        flat: the buffer, one-dimensional.
        array: the same buffer as [capacity, *shape].
        address: of the buffer.
    """

    width: int
    itemsize: int
    rows: int = 0
    flat: Any = None
    array: Any = None
    address: int = 0


class Arenas:
    """The arenas of one graph; they grow, and what is in them stays.

    Args:
        windows: layouts and windows, shared with other graphs.
        pool: where buffers come from and go to.
    """

    def __init__(self, windows: Windows, pool: BufferPool) -> None:
        self._windows = windows
        self._pool = pool
        self.arenas: list[Arena] = []
        self._arrays: list[Any] = []

    def array(self, window: int) -> Any:
        """The array [capacity, *shape] that a window shows; a view, valid until its arena grows."""
        self._keep_up()
        found = self._arrays[window]
        if found is None:
            seen = self._windows.windows[window]
            found = self._arrays[window] = seen.view(self.arenas[seen.arena].array)
        return found

    def arena(self, window: int) -> Arena:
        """The arena that a window shows."""
        return self.arenas[self._windows.windows[window].arena]

    def addresses(self) -> np.ndarray:
        """Per arena where it begins in memory (0: it has no rows) and the entries of a row, int64 [arenas, 2]."""
        return np.array([(arena.address, arena.width) for arena in self.arenas], np.int64).reshape(-1, 2)

    def rows(self) -> list[int]:
        """Rows in use, per window; counted at the plain window of an arena, 0 at the others."""
        self._keep_up()
        return [self.arenas[seen.arena].rows if seen.plain else 0 for seen in self._windows.windows]

    def reserve(self, window: int, rows: int) -> None:
        """Make room for `rows` rows in all in the arena of a window; keeps what is there."""
        self._keep_up()
        number = self._windows.windows[window].arena
        arena = self.arenas[number]
        if arena.array is None or rows > len(arena.array):
            shape, dtype = self._windows.layouts[number]
            old, used = arena.flat, arena.rows * arena.width
            arena.flat = self._pool.acquire(max(rows, 2 * arena.rows) * arena.width, dtype)
            if old is not None:
                arena.flat[:used] = old[:used]
                self._pool.release(old)
            arena.address = arena.flat.__array_interface__["data"][0]
            capacity = len(arena.flat) // arena.width
            arena.array = arena.flat[: capacity * arena.width].reshape(capacity, *shape)
            for at, seen in enumerate(self._windows.windows):
                if seen.arena == number:
                    self._arrays[at] = None
        arena.rows = rows

    def release(self) -> None:
        """Give all buffers back to the pool; the values are gone."""
        for arena in self.arenas:
            if arena.flat is not None:
                self._pool.release(arena.flat)
        self.arenas.clear()
        self._arrays.clear()

    @property
    def bytes(self) -> int:
        """Bytes of the rows in use."""
        return sum(arena.rows * arena.width * arena.itemsize for arena in self.arenas)

    def _keep_up(self) -> None:
        """Other graphs may have added layouts and windows."""
        for shape, dtype in self._windows.layouts[len(self.arenas) :]:
            entries = 1
            for size in shape:
                entries *= size
            self.arenas.append(Arena(entries, dtype.itemsize))
        self._arrays += [None] * (len(self._windows.windows) - len(self._arrays))
