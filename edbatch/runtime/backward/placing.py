"""Where the gradients of values, and what is computed on the way back, lie: side by side in one piece of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.addresses import ROWS
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.backward.out import Out
from edbatch.runtime.backward.records import NODES, OWN, SAVED, RouteTables, route_in
from edbatch.runtime.store import KeptBuffer

LINE = 16  # entries: what is computed of a set begins with a line of the cache


@compiled(small=True)
def measure(
    plan: Out, rows: np.ndarray, touched: np.ndarray, values: np.ndarray, gradients: np.ndarray, width: int,
    route: RouteTables,
) -> tuple[int, int]:  # fmt: skip
    """Fill in where everything begins.

    Args:
        rows: per set, how many nodes have it.
        touched: per arena of values, whether gradients are read or written there.
        values, gradients: the arenas, records `Rows`; width: bytes of an entry.

    Returns:
        How many entries hold gradients of values, which come first, and how many there are.
    """
    n, begins, end = len(values), route.begins, 0
    begins[:] = -1
    for arena in range(n):
        if touched[arena] and gradients[arena]["address"] == 0:
            begins[arena] = end
            end += _lines(values[arena]["used"] * (values[arena]["stride"] // width))
    of_values = end
    for at in range(len(route.buffers)):
        buffer = route.buffers[at]
        if buffer["rows"] == SAVED:
            continue
        most = rows[buffer["set"]]
        if buffer["rows"] != OWN:
            most = _most(plan, buffer["kind"], buffer["rows"])
        begins[n + at] = end
        end += _lines(most * buffer["width"])
    return of_values, end


@compiled(small=True)
def _lines(entries: int) -> int:
    return -(-entries // LINE) * LINE


@compiled(small=True)
def _most(plan: Out, kind: int, rows: int) -> int:
    """The most nodes that a batch of a type has, or elements that its operand `rows` has."""
    most = np.int64(1)
    for at in range(len(plan.batches)):
        if plan.batches[at]["type"] == kind:
            n = np.int64(plan.batches[at]["n"])
            if rows != NODES:
                n = np.int64(plan.operands[plan.batches[at]["operand"] + rows]["n"])
            most = max(most, n)
    return int(most)


@compiled(small=True)
def place(
    base: int, width: int, values: np.ndarray, gradients: np.ndarray, begins: np.ndarray, route_tables: np.ndarray
) -> None:
    """Fill in the addresses of what has been measured, from an address on, and of the values.

    Args:
        width: bytes of an entry.
        values, gradients: the arenas, records `Rows`; those of gradients are filled in, too.
    """
    route = route_in(route_tables)
    memory, n = route.memory, len(values)
    for arena in range(n):
        if begins[arena] >= 0:
            gradients[arena]["address"] = base + width * begins[arena]
            gradients[arena]["stride"] = values[arena]["stride"]
            gradients[arena]["used"] = values[arena]["used"]
        memory[arena]["address"], memory[arena]["stride"] = values[arena]["address"], values[arena]["stride"]
        memory[n + arena]["address"], memory[n + arena]["stride"] = gradients[arena]["address"], values[arena]["stride"]
    for at in range(len(route.buffers)):
        if begins[n + at] >= 0:
            memory[2 * n + at]["address"] = base + width * begins[n + at]
            memory[2 * n + at]["stride"] = width * route.buffers[at]["width"]


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
