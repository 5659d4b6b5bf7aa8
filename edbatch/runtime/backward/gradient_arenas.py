"""Where the gradients of values lie."""

from __future__ import annotations

from typing import Any

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows


class GradientArenas:
    """Gradients of the values in a graph's arenas: the same rows, all zeros at first, made when first touched.

    Args:
        windows, arenas: of the values.
        pool: where buffers come from and go to.
    """

    def __init__(self, windows: Windows, arenas: Arenas, pool: BufferPool) -> None:
        self._windows = windows
        self._arenas = arenas
        self._pool = pool
        self._flats: dict[int, Any] = {}  # each with the number of rows that its arena had: values may come later
        self._arrays: dict[int, Any] = {}

    def flat(self, arena: int) -> tuple[Any, int]:
        """The buffer of an arena, and the entries of a row."""
        values = self._arenas.arenas[arena]
        if arena not in self._flats:
            flat = self._pool.acquire(values.rows * values.width, self._windows.layouts[arena][1])
            flat[: values.rows * values.width] = 0
            self._flats[arena] = flat, values.rows
        return self._flats[arena][0], values.width

    def array(self, window: int) -> Any:
        """The gradients that a window shows [rows, *shape]."""
        found = self._arrays.get(window)
        if found is None:
            seen = self._windows.windows[window]
            flat, width = self.flat(seen.arena)
            rows = self._flats[seen.arena][1]
            array = flat[: rows * width].reshape(rows, *self._windows.layouts[seen.arena][0])
            found = self._arrays[window] = seen.view(array)
        return found

    def release(self) -> None:
        """Give all buffers back to the pool; the gradients are gone."""
        self._arrays.clear()
        while self._flats:
            _, (flat, _) = self._flats.popitem()
            self._pool.release(flat)
