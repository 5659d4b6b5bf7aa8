"""Arenas: the memory of one graph, rows of one layout each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edbatch.base.records import joined, records, words_of
from edbatch.memory.plan.addresses import ROWS, Rows
from edbatch.memory.plan.pool import BufferPool, KeptBuffer
from edbatch.memory.plan.windows import GRADIENT, Windows


class Arenas:
    """The arenas of one graph, one for each layout; they grow, and what is in them stays.

    Args:
        windows: layouts and windows, shared with other graphs.
        pool: where buffers come from and go to.

    Attributes:
        rows: per arena, a record `Rows`; compiled code counts the rows in use; used: how many these are; words: the
            fields of all of them.
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
        words = self.words
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
        self.rows, self.words = rows, words_of(rows)
        self.used = self.words[:, 2]

    def put(self, used: np.ndarray) -> None:
        """Have so many rows in use of each arena, where none are, and room for them."""
        self.see_layouts()
        self.words[: len(used), 2] = used
        if self._put is not used:  # for what was put last there is
            self.make_room()
            self._put = used

    def clear(self) -> None:
        """Have no row in use, and the same room; the values are gone."""
        self.words[:, 2] = 0
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


_STRIDES = np.array([0, 1, 0, 0])  # of the fields of a record `Rows`, what stays where there are none


class PlacedRows(NamedTuple):
    """Rows of arenas that lie side by side in one piece of memory.

    Attributes:
        arenas: which; begins: where each begins, in entries.
        words: the fields of their records `Rows`, but that addresses count from the piece's.
        zeros, entries: of the piece: the first are zeros; how many there are.
    """

    arenas: np.ndarray
    begins: dict[int, int]
    words: np.ndarray
    zeros: int
    entries: int


class GradientRows:
    """The rows of a graph's arenas that a backward pass fills: gradients of values, and what derivatives compute."""

    def __init__(self, windows: Windows, arenas: Arenas, pool: BufferPool) -> None:
        self._windows, self._arenas, self._pool = windows, arenas, pool
        self._kept = KeptBuffer(pool)
        self._claims: list[tuple[PlacedRows, Any]] = []  # with the piece of memory
        self._arrays: dict[int, Any] = {}

    def claim(self, placed: PlacedRows) -> None:
        """Have these rows, with those that arenas had of a backward pass through an earlier stretch of runs."""
        if not placed.entries:
            return
        known = self._arenas
        known.see_layouts()  # the plan may be another graph's
        _, dtype = self._windows.layouts[placed.arenas.item(0)]
        if not self._claims:
            address, piece = self._kept.take(placed.entries, dtype)
        else:
            piece = self._pool.acquire(placed.entries, dtype)
            address = self._pool.address(piece)
            self._arrays.clear()
            for arena, begin in placed.begins.items():
                n = known.used.item(arena)
                if n:
                    before = self.flat(arena, 0, n)
                    piece[begin : begin + len(before)] = before
        if placed.zeros:
            piece[: placed.zeros] = 0
        self._claims.append((placed, piece))
        words = placed.words.copy()
        words[:, 0] += address
        known.words[placed.arenas] = words

    def there(self, n: int) -> np.ndarray:
        """Per arena, of which there are n, whether it is one of gradients that has rows; none: that is of none."""
        found = np.zeros(n if self._claims else 0, np.bool_)
        for placed, _ in self._claims:
            found[placed.arenas[placed.arenas % 2 == GRADIENT]] = True
        return found

    def flat(self, arena: int, first: int, n: int) -> Any:
        """The entries of n rows of an arena from the first on; of gradients where nothing has flowed: zeros."""
        for placed, piece in reversed(self._claims):
            begin = placed.begins.get(arena)
            if begin is not None:
                width = self._windows.widths()[arena]
                return piece[begin + first * width : begin + (first + n) * width]
        known = self._arenas
        known.see_layouts()
        rows, stride = known.used.item(arena - GRADIENT), known.words.item(arena, 1)
        entries, words = rows * self._windows.widths()[arena], np.array([[0, stride, rows, rows]])
        self.claim(PlacedRows(np.array([arena]), {arena: 0}, words, entries, entries))
        return self.flat(arena, first, n)

    def array(self, window: int) -> Any:
        """The rows that a window shows [rows, *shape]; see `flat`."""
        found = self._arrays.get(window)
        if found is None:
            seen = self._windows.windows[window]
            rows = self._arenas.used.item(seen.arena)
            if not rows and seen.arena % 2 == GRADIENT:
                rows = self._arenas.used.item(seen.arena - GRADIENT)
            flat = self.flat(seen.arena, 0, rows)
            found = self._arrays[window] = seen.view(flat.reshape(rows, *self._windows.layouts[seen.arena][0]))
        return found

    @property
    def room(self) -> int:
        """Bytes of memory that stays."""
        return self._kept.bytes

    @property
    def bytes(self) -> int:
        """Of these rows."""
        return sum(int(placed.words[:, 1] @ placed.words[:, 2]) for placed, _ in self._claims)

    def of(self, window: int) -> Any:
        """The gradients of what a window of values shows [rows, *shape]."""
        return self.array(window + GRADIENT)

    def release(self) -> None:
        """Have none; the gradients are gone."""
        if self._claims:
            self._arrays.clear()
            for placed, _ in self._claims:
                self._arenas.words[placed.arenas] = placed.words * _STRIDES  # a recording is found by all of them
        while len(self._claims) > 1:
            self._pool.release(self._claims.pop()[1])
        self._claims.clear()

    def give_back(self) -> None:
        """Have none, and let others have the memory."""
        self.release()
        self._kept.give_back()
