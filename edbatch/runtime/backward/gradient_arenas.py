"""Where the gradients of values lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.memory.plan.addresses import ROWS
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.store import KeptBuffer

_NONE = np.zeros(0, ROWS)


class GradientArenas:
    """Gradients of the values in a graph's arenas: the same rows, all zeros at first, made when first touched.

    Args:
        windows, arenas: of the values.
        pool: where memory comes from and goes to, but for that which is needed first.
        kept: that memory, which stays with the graph; nobody else has it as long as these arenas have.
    """

    def __init__(self, windows: Windows, arenas: Arenas, pool: BufferPool, kept: KeptBuffer) -> None:
        self._windows = windows
        self._arenas = arenas
        self._pool = pool
        self._kept = kept
        self._rows = _NONE
        self._flats: list[tuple[int, Any]] = []  # what was acquired, by address
        self._arrays: dict[int, Any] = {}

    def rows(self, n: int) -> np.ndarray:
        """Per arena, of which there are n, a record `Rows`: as many as its values had; values may come later."""
        known = self._rows
        if len(known) < n:
            self._rows = np.zeros(n, ROWS)
            if len(known):
                self._rows[: len(known)] = known
        return self._rows[:n]

    def acquire(self, entries: int, zeros: int, dtype: np.dtype) -> tuple[int, Any]:
        """Memory, which is kept as long as these arenas; the first entries are zeros. With its address."""
        if self._flats:
            flat = self._pool.acquire(max(1, entries), dtype)
            found = self._pool.address(flat), flat
        else:
            found = self._kept.take(max(1, entries), dtype)
        self._flats.append(found)
        found[1][:zeros] = 0
        return found

    def array(self, window: int) -> Any:
        """The gradients that a window shows [rows, *shape]."""
        found = self._arrays.get(window)
        if found is None:
            seen = self._windows.windows[window]
            shape, dtype = self._windows.layouts[seen.arena]
            size = self._windows.widths()[seen.arena]
            address, _, rows, _ = self.rows(len(self._windows.layouts)).item(seen.arena)
            if not address:
                rows = int(self._arenas.rows[seen.arena]["used"])
                address, _ = self.acquire(rows * size, rows * size, dtype)
                self._rows[seen.arena]["address"], self._rows[seen.arena]["used"] = address, rows
            base, flat = next(one for one in self._flats if 0 <= address - one[0] < one[1].nbytes)
            begin = (address - base) // dtype.itemsize
            array = flat[begin : begin + rows * size].reshape(rows, *shape)
            found = self._arrays[window] = seen.view(array)
        return found

    def release(self) -> None:
        """Give all memory back to the pool; the gradients are gone."""
        self._arrays.clear()
        self._rows = _NONE
        while len(self._flats) > 1:
            _, flat = self._flats.pop()
            self._pool.release(flat)
        self._flats.clear()
