"""The operands of a batch that has run: their rows read once more, and gradients added to their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.format import GATHER, SHARED, SLICE, Operand, Plan, Segment
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.type_table import TypeTable


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


def read_evenly(operand: Operand, arenas: Arenas) -> Any:
    """An operand's rows as a view: consecutive, one for all (batch axis of length 1), or at a constant distance."""
    access, window, start, distance, _, count = operand
    array = arenas.array(window)
    if access == SLICE:
        return array[start : start + count]
    if access == SHARED:
        return array[start : start + 1]
    end = start + distance * count
    return array[start : end if end >= 0 else None : distance]


def gather(
    operand: Operand, plan: Plan, indices: Any, arenas: Arenas, table: TypeTable, target: Any, size: int,
    begin: int = 0, stride: int | None = None,
) -> None:  # fmt: skip
    """Copy an operand's rows from anywhere.

    Args:
        indices: the plan's, on the device.
        target, begin, stride: a flat buffer, where the first row goes, from one to the next (None: `size`).
        size: entries of a row.
    """
    stride = size if stride is None else stride
    itemsize, loops = target.itemsize, table.backend.loops
    to = table.backend.address(target) + itemsize * begin, itemsize * stride, itemsize * size
    for window, rows, positions, n in segments_of(operand, plan):
        shown = table.windows.windows[window]
        if shown.width:
            arena = arenas.arena(window)
            source = (n, arena.address + itemsize * shown.column, itemsize * arena.width, indices, rows)
            loops.gather_rows(*source, *to) if positions < 0 else loops.gather_rows_to(*source, positions, *to)
        else:
            where = slice(None) if positions < 0 else indices[positions : positions + n]
            last = begin + (operand.n - 1) * stride + size
            there = table.backend.lib.stride_tricks.as_strided(
                target[begin:last], (operand.n, size), (stride * itemsize, itemsize)
            )
            there[where] = arenas.array(window)[indices[rows : rows + n]].reshape(n, size)


def add(
    operand: Operand, positions: int, plan: Plan, indices: Any, gradients: GradientArenas, table: TypeTable,
    source: Any, begin: int, stride: int, width: int,
) -> None:  # fmt: skip
    """Add gradients to an operand's rows: those that several nodes read get the sum, in the order of the nodes.

    Args:
        operand: not of several windows.
        positions: where the list of what is added begins in the indices of the plan; negative: all in order.
        indices: the plan's, on the device.
        source, begin, stride, width: a flat buffer, where the first gradient begins, from one to the next, entries.
    """
    access, window, start, distance, _, n = operand
    shown = table.windows.windows[window]
    loops, is_list = table.backend.loops, access == GATHER
    if shown.width and (is_list or positions < 0):
        flat, row = gradients.flat(shown.arena)
        if is_list:
            loops.add_rows_at(source, begin, stride, indices, positions, start, n, flat, shown.column, row, width)
        else:
            loops.add_rows(source, begin, stride, n, flat, start * row + shown.column, distance * row, width)
        return
    rows = np.arange(n) if positions < 0 else plan.indices[positions : positions + n]
    itemsize, lib = source.itemsize, table.backend.lib
    shape, strides = (int(rows.max()) + 1, width), (stride * itemsize, itemsize)
    found = lib.stride_tricks.as_strided(source[begin:], shape, strides)
    if positions >= 0:
        found = found[indices[positions : positions + n]]
    array = gradients.array(window)
    to = plan.indices[start : start + n] if is_list else start + distance * np.arange(n)
    loops.add_at(array, to, found.reshape(n, *array.shape[1:]))


def segments_of(operand: Operand, plan: Plan) -> list[Segment]:
    """Of a gathered operand; of one window: a segment of all rows, whose positions are -1."""
    access, window, first, _, segments, n = operand
    if access == GATHER:
        return [Segment(window, first, -1, n)]
    return [Segment(*one) for one in plan.segments[first : first + segments].tolist()]
