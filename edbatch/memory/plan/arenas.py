"""Arenas: the memory of one graph, rows of one layout each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from edbatch.base.records import joined, records, words_of
from edbatch.memory.plan.addresses import ROWS, Rows
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import GRADIENT, Windows


class Arenas:
    """The arenas of one graph, one for each layout; they grow, and what is in them stays.

    Args:
        windows: layouts and windows, shared with other graphs.
        pool: where buffers come from and go to.

    Attributes:
        rows: per arena, a record `Rows`; compiled code counts the rows in use; used: how many these are.
        flats: per arena its buffer, one-dimensional; None: there is no room.
        room: bytes of all buffers.
    """

    def __init__(self, windows: Windows, pool: BufferPool) -> None:
        self._windows = windows
        self._pool = pool
        self._renew(np.zeros(0, ROWS))
        self.flats: list[Any] = []
        self.room = 0
        self._arrays: dict[int, Any] = {}
        self._put: np.ndarray | None = None

    def see_layouts(self) -> bool:
        """Have an arena for every layout that there is now; returns whether there are new ones."""
        known, layouts = len(self.flats), self._windows.layouts
        if known == len(layouts):
            return False
        self.flats += [None] * (len(layouts) - known)
        widths = self._windows.widths()
        strides = [widths[at] * layouts[at][1].itemsize for at in range(known, len(layouts))]
        self._renew(joined(self.rows, records([Rows(0, stride) for stride in strides], ROWS)))
        return True

    def array(self, window: int) -> Any:
        """The array [capacity, *shape] that a window shows; a view, valid until its arena grows."""
        found = self._arrays.get(window)
        if found is None:
            seen = self._windows.windows[window]
            flat, width = self.flats[seen.arena], self._windows.widths()[seen.arena]
            capacity = len(flat) // width
            whole = flat[: capacity * width].reshape(capacity, *self._windows.layouts[seen.arena][0])
            found = self._arrays[window] = seen.view(whole)
        return found

    def make_room(self) -> None:
        """Have room for all rows that are in use; what was in them stays."""
        words = self._words
        for arena in (words[:, 2] > words[:, 3]).nonzero()[0].tolist():
            widths = self._windows.widths()
            used, room = words[arena, 2:].tolist()
            width, dtype, old = widths[arena], self._windows.layouts[arena][1], self.flats[arena]
            new = self._pool.acquire(max(used, 2 * room) * width, dtype)
            if old is not None:
                new[: room * width] = old[: room * width]
                windows = self._windows.windows
                self._arrays = {at: array for at, array in self._arrays.items() if windows[at].arena != arena}
            self.flats[arena] = new
            self.room += new.nbytes
            words[arena, 0], words[arena, 3] = self._pool.address(new), len(new) // width
            if old is not None:
                self.room -= old.nbytes
                self._pool.release(old)

    def _renew(self, rows: np.ndarray) -> None:
        self.rows, self._words = rows, words_of(rows)
        self.used = self._words[:, 2]

    def claim(self, arenas: Any, used: Any) -> None:
        """Have so many rows in use of some arenas, and room for them; both are lists or arrays."""
        self.used[arenas] = used
        if (self._words[arenas, 3] < used).any():
            self.make_room()

    def fill_zeros(self, arenas: Iterable[int]) -> None:
        """Fill the rows in use of some arenas with zeros."""
        widths = self._windows.widths()
        for arena in arenas:
            self.flats[arena][: widths[arena] * self.used.item(arena)] = 0

    def put(self, used: np.ndarray) -> None:
        """Have so many rows in use of each arena, where none are, and room for them."""
        self.see_layouts()
        self._words[: len(used), 2] = used
        if self._put is not used:  # for what was put last there is
            self.make_room()
            self._put = used

    def clear(self) -> None:
        """Have no row in use, and the same room; the values are gone."""
        self._words[:, 2] = 0
        if self._pool.poisons:
            for flat in self.flats:
                if flat is not None:
                    self._pool.poison(flat)

    def release(self) -> None:
        """Give all buffers back to the pool; the values are gone."""
        self._arrays.clear()
        self._put = None
        self.room = 0
        for arena in np.flatnonzero(self.rows["room"]).tolist():
            flat, self.flats[arena] = self.flats[arena], None
            if flat is not None:
                self._pool.release(flat)
        for name in ("address", "used", "room"):
            self.rows[name] = 0

    @property
    def bytes(self) -> int:
        """Bytes of the rows in use."""
        return int(self.rows["used"] @ self.rows["stride"])


class GradientRows:
    """The rows of a graph's arenas that a backward pass fills: gradients of values, and what derivatives compute."""

    def __init__(self, windows: Windows, arenas: Arenas) -> None:
        self._windows, self._arenas = windows, arenas
        self._claimed: set[int] = set()

    def claim(self, arenas: np.ndarray, rows: np.ndarray) -> None:
        """Have so many rows of some arenas; gradients are zeros at first."""
        numbers = set(arenas.tolist())
        new = (numbers & self._windows.of_gradients) - self._claimed
        self._claimed |= numbers
        self._arenas.see_layouts()
        self._arenas.claim(arenas, rows)
        self._arenas.fill_zeros(new)

    def array(self, window: int) -> Any:
        """The gradients of what a window of values shows [rows, *shape]."""
        arena = self._windows.windows[window + GRADIENT].arena
        if arena not in self._claimed:  # nothing has flowed there
            self._arenas.see_layouts()
            self.claim(np.array([arena]), self._arenas.used[[arena - GRADIENT]])
        return self._arenas.array(window + GRADIENT)

    def release(self) -> None:
        """Have none; the gradients are gone."""
        if self._claimed:
            self._arenas.claim(list(self._claimed), 0)
            self._claimed.clear()
