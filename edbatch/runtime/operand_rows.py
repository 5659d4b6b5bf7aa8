"""The operands of a batch that has run: their rows read once more, and gradients added to their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.spec import Spec
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Access, Plan
from edbatch.memory.pool import BufferPool
from edbatch.memory.windows import Windows
from edbatch.runtime.ran import Ran
from edbatch.runtime.type_table import TypeTable

# Plain ints: comparing with an IntEnum's member costs more.
_SLICE, _SHARED, STRIDED, _GATHER = int(Access.SLICE), int(Access.SHARED), int(Access.STRIDED), int(Access.GATHER)


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
        for flat, _ in self._flats.values():
            self._pool.release(flat)
        self._flats.clear()
        self._arrays.clear()


def read_evenly(operand: list[int], arenas: Arenas) -> Any:
    """An operand's rows as a view: consecutive, one for all (batch axis of length 1), or at a constant distance."""
    access, window, start, distance, count = operand
    array = arenas.array(window)
    if access == _SLICE:
        return array[start : start + count]
    if access == _SHARED:
        return array[start : start + 1]
    end = start + distance * count
    return array[start : end if end >= 0 else None : distance]


def gather(operand: list[int], ran: Ran, arenas: Arenas, table: TypeTable, spec: Spec, buffer: Any) -> Any:
    """An operand's rows from anywhere, copied to `buffer` (flat)."""
    count = operand[4]
    target = buffer[: count * spec.size]
    words, loops, indices = target.itemsize // 4, table.backend.loops, ran.indices
    to = (table.backend.address(target), words * spec.size, words * spec.size)
    for seen, rows, positions, n in _segments(operand, ran.plan):
        shown = table.windows.windows[seen]
        if shown.width:
            arena = arenas.arena(seen)
            begin = arena.address + arena.itemsize * shown.column
            source = (n, begin, words * arena.width, indices, rows)
            loops.gather_rows(*source, *to) if positions < 0 else loops.gather_rows_to(*source, positions, *to)
        else:
            where = slice(None) if positions < 0 else indices[positions : positions + n]
            found = arenas.array(seen)[indices[rows : rows + n]]
            target.reshape(count, spec.size)[where] = found.reshape(n, spec.size)
    return target.reshape(count, *spec.shape)


def add(
    operand: list[int], ran: Ran, gradients: GradientArenas, table: TypeTable, source: Any, begin: int, stride: int,
    spec: Spec,
) -> None:  # fmt: skip
    """Add gradients to an operand's rows: those that several nodes read get the sum, in the order of the nodes.

    Args:
        source, begin, stride: a flat buffer, where the first node's gradient begins, the distance between nodes'.
        spec: of the operand.
    """
    access, window, start, distance, count = operand
    even = access <= STRIDED
    loops, indices = table.backend.loops, ran.indices
    for seen, rows, positions, n in [(window, start, -1, count)] if even else _segments(operand, ran.plan):
        shown = table.windows.windows[seen]
        if shown.width:
            flat, width = gradients.flat(shown.arena)
            if even:
                loops.add_rows(
                    source, begin, stride, n, flat, start * width + shown.column, distance * width, spec.size
                )
            else:
                loops.add_rows_at(
                    source, begin, stride, indices, positions, rows, n, flat, shown.column, width, spec.size
                )
            continue
        itemsize, k = source.itemsize, table.backend
        found = k.lib.stride_tricks.as_strided(source[begin:], (count, spec.size), (stride * itemsize, itemsize))
        if positions >= 0:
            found = found[indices[positions : positions + n]]
        to = start + distance * np.arange(n) if even else ran.plan.indices[rows : rows + n]
        loops.add_at(gradients.array(seen), to, found.reshape(n, *spec.shape))


def _segments(operand: list[int], plan: Plan) -> list[Any]:
    """(window, start of the rows in `indices`, start of the positions or -1, number) of a gathered operand."""
    access, window, start, number, count = operand
    return [(window, start, -1, count)] if access == _GATHER else plan.segments[start : start + number].tolist()
