"""Running a plan: one kernel a batch, operands as views wherever the plan found them side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.node_type import parameter_array
from edbatch.kernels.gather import gather_rows, gather_rows_to
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Access, Plan
from edbatch.memory.pool import BufferPool
from edbatch.runtime.type_table import BoundType, TypeTable

# Plain ints: comparing with an IntEnum's member costs more than the rest of the dispatch.
_SLICE, _SHARED, _STRIDED, _GATHER = int(Access.SLICE), int(Access.SHARED), int(Access.STRIDED), int(Access.GATHER)


class Executor:
    """Runs the batches of one plan after another over the arenas of one graph.

    Args:
        arenas: where values live.
        table: the graph's types and windows.
        pool: for the buffer that gathers write to.
        check_nan: raise after the first batch with a NaN.
    """

    def __init__(self, arenas: Arenas, table: TypeTable, pool: BufferPool, check_nan: bool) -> None:
        self._arenas = arenas
        self._bound = table.bound
        self._windows = table.windows.windows
        self._pool = pool
        self._check_nan = check_nan
        self._scratch: dict[np.dtype, Any] = {}

    def run(self, plan: Plan, n_sources: int, inputs: list[Any]) -> None:
        """Fill the rows of sources, then compute batch after batch.

        Args:
            plan: the first `n_sources` batches hold sources.
            inputs: arrays of the input nodes, found by payload.
        """
        arenas, bound = self._arenas, self._bound
        for window, rows in enumerate(plan.rows.tolist()):
            if rows:
                arenas.reserve(window, rows)
        arrays = arenas.arrays()
        batches, operands, indices = plan.batches.tolist(), plan.operands.tolist(), plan.indices
        for batch in batches[:n_sources]:
            self._stage(batch, arrays, indices, inputs)
        parameters: dict[int, list[Any]] = {}
        for kind, row, n, at, payload, offsets in batches[n_sources:]:
            type = bound[kind]
            out = arrays[type.window][row : row + n]
            if kind not in parameters:
                parameters[kind] = type.parameters()
            if type.places is not None:
                self._place(type, out, row, operands[at : at + len(type.places)], arrays, plan, parameters[kind])
            else:
                used = 0
                found = []
                for slot, given in enumerate(parameters[kind]):
                    if given is not None:
                        found.append(given)
                        continue
                    access, window, start, distance, count = operand = operands[at]
                    at += 1
                    if access == _SLICE:
                        found.append(arrays[window][start : start + count])
                    elif access <= _STRIDED:
                        found.append(_rows(arrays[window], access, start, distance, count))
                    else:
                        size = type.type.operands[slot].size
                        target = self._target(out.dtype, used, count * size)
                        self._gather(operand, plan, arrays, target, size, used, None)
                        shape = (count, *type.type.operands[slot].shape)
                        found.append(target[used : used + count * size].reshape(shape))
                        used += count * size
                if type.type.op.variadic:
                    found.append(indices[offsets : offsets + n + 1])
                for begin in range(payload, payload + n * type.type.op.payload, n):
                    found.append(indices[begin : begin + n])  # noqa: PERF401 (mostly none or one)
                type.call(out, *found)
            if self._check_nan:
                bad = int(np.isnan(out.reshape(n, -1)).any(axis=1).sum())
                if bad:
                    raise EdBatchError(f"NaN in a result of {type.type} ({bad} of {n} in its batch)")

    def release(self) -> None:
        """Give the gather buffers back."""
        for buffer in self._scratch.values():
            self._pool.release(buffer)
        self._scratch.clear()

    def _stage(self, batch: list[int], arrays: list[Any], indices: np.ndarray, inputs: list[Any]) -> None:
        kind, row, n, _, payload, _ = batch
        type = self._bound[kind]
        values: Any = None
        if type.type.op.payload:
            values = [inputs[i] for i in indices[payload : payload + n].tolist()]
        elif type.type.attributes:
            ((_, spec),) = type.type.attributes
            values = parameter_array(spec)
        type.call(arrays[type.window][row : row + n], values)

    def _place(
        self, type: BoundType, out: Any, row: int, operands: list[Any], arrays: list[Any], plan: Plan, given: list[Any]
    ) -> None:
        """Copy operands to their parts of the result, gathers straight from where they come from."""
        assert type.places is not None
        assert type.parts is not None
        parts = type.parts(out)
        arena = self._arenas.arenas[self._windows[type.window].arena]
        at = 0
        for slot, (column, width) in enumerate(type.places):
            if given[slot] is not None:
                parts[slot][...] = given[slot]
                continue
            access, window, start, distance, count = operand = operands[at]
            at += 1
            if access <= _STRIDED:
                parts[slot][...] = _rows(arrays[window], access, start, distance, count)
            elif width:
                begin = row * arena.width + column
                self._gather(operand, plan, arrays, arena.flat, width, begin, arena.width)
            else:
                size = type.type.operands[slot].size
                target = self._target(out.dtype, 0, count * size)
                self._gather(operand, plan, arrays, target, size, 0, None)
                parts[slot][...] = target[: count * size].reshape(count, *type.type.operands[slot].shape)

    def _gather(
        self, operand: list[int], plan: Plan, arrays: list[Any], target: Any, size: int, begin: int, stride: int | None
    ) -> None:
        """Copy the operand's rows to `target` (flat) from `begin` on, `stride` (default: `size`) entries apart."""
        access, window, start, number, count = operand
        stride = size if stride is None else stride
        one = access == _GATHER
        segments = [(window, start, -1, count)] if one else plan.segments[start : start + number].tolist()
        for window, rows, positions, n in segments:
            seen = self._windows[window]
            if seen.width:
                arena = self._arenas.arenas[seen.arena]
                source = (arena.flat, arena.width, seen.column, plan.indices, rows)
                if positions < 0:
                    gather_rows(*source, n, target, stride, begin, size)
                else:
                    gather_rows_to(*source, positions, n, target, stride, begin, size)
            else:
                where = slice(None) if positions < 0 else plan.indices[positions : positions + n]
                last = begin + (count - 1) * stride + size
                shown = np.lib.stride_tricks.as_strided(
                    target[begin:last], (count, size), (stride * target.itemsize, target.itemsize)
                )
                shown[where] = arrays[window][plan.indices[rows : rows + n]].reshape(n, size)

    def _target(self, dtype: np.dtype, used: int, entries: int) -> Any:
        buffer = self._scratch.get(dtype)
        if buffer is None or len(buffer) < used + entries:
            # Operands already gathered for this batch stay in the old buffer, which they keep alive.
            buffer = self._scratch[dtype] = self._pool.acquire(2 * (used + entries), dtype)
        return buffer


def _rows(array: Any, access: int, start: int, distance: int, count: int) -> Any:
    """Rows as a view: consecutive, one for all (batch axis of length 1), or at a constant distance."""
    if access == _SLICE:
        return array[start : start + count]
    if access == _SHARED:
        return array[start : start + 1]
    end = start + distance * count
    return array[start : end if end >= 0 else None : distance]
