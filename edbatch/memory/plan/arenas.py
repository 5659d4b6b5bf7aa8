"""Arenas: the memory of one graph, rows of one layout each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.memory.plan.addresses import ROWS, Rows
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows


@dataclass(slots=True)
class Arena:
    """Rows of one shape and dtype.

    Attributes:
        width: entries of one row.
        rows: in use.
        flat: the buffer, one-dimensional.
        address: of the buffer.
    """

    width: int
    itemsize: int
    rows: int = 0
    flat: Any = None
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
        self._arrays: dict[int, Any] = {}

    def array(self, window: int) -> Any:
        """The array [capacity, *shape] that a window shows; a view, valid until its arena grows."""
        found = self._arrays.get(window)
        if found is None:
            seen = self._windows.windows[window]
            arena = self.arena(window)
            capacity = len(arena.flat) // arena.width
            shape = self._windows.layouts[seen.arena][0]
            whole = arena.flat[: capacity * arena.width].reshape(capacity, *shape)
            found = self._arrays[window] = seen.view(whole)
        return found

    def arena(self, window: int) -> Arena:
        """The arena that a window shows."""
        number = self._windows.windows[window].arena
        if number >= len(self.arenas):  # other graphs have added layouts
            widths = self._windows.widths()
            for at in range(len(self.arenas), len(widths)):
                self.arenas.append(Arena(widths[at], self._windows.layouts[at][1].itemsize))
        return self.arenas[number]

    def addresses(self) -> np.ndarray:
        """Per arena, a record `Rows`."""
        return np.array([Rows(arena.address, arena.itemsize * arena.width) for arena in self.arenas], ROWS)

    def rows(self) -> np.ndarray:
        """Rows in use, per window; counted at the plain window of an arena, 0 at the others; int32."""
        rows = np.zeros(len(self._windows.windows), np.int32)
        windows = self._windows.plain_windows
        for number, arena in enumerate(self.arenas):
            if arena.rows:
                rows[windows[number]] = arena.rows
        return rows

    def reserve(self, window: int, rows: int) -> None:
        """Make room for `rows` rows in all in the arena of a window; keeps what is there."""
        arena = self.arena(window)
        if arena.flat is None or rows * arena.width > len(arena.flat):
            number = self._windows.windows[window].arena
            old, used = arena.flat, arena.rows * arena.width
            new = self._pool.acquire(max(rows, 2 * arena.rows) * arena.width, self._windows.layouts[number][1])
            if old is not None:
                new[:used] = old[:used]
                windows = self._windows.windows
                self._arrays = {at: array for at, array in self._arrays.items() if windows[at].arena != number}
            arena.flat, arena.address = new, self._pool.address(new)
            if old is not None:
                self._pool.release(old)
        arena.rows = rows

    def release(self) -> None:
        """Give all buffers back to the pool; the values are gone."""
        self._arrays.clear()
        while self.arenas:
            flat = self.arenas.pop().flat
            if flat is not None:
                self._pool.release(flat)

    @property
    def bytes(self) -> int:
        """Bytes of the rows in use."""
        return sum(arena.rows * arena.width * arena.itemsize for arena in self.arenas)
