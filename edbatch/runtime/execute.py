"""Running a plan: one kernel a batch, operands as views wherever the plan found them side by side."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.node_type import parameter_array
from edbatch.graph.options import current_options
from edbatch.kernels.program import NONE
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.format import STRIDED, Batch, Operand, Plan
from edbatch.runtime.backward.operand_rows import gather, read_evenly
from edbatch.runtime.lines import Lines
from edbatch.runtime.type_table import TypeTable

_BYTES = np.dtype(np.uint8)


class Executor:
    """Runs the batches of one plan after another over the arenas of one graph.

    The interpreter runs batches of compiled cells, one after the other; every other batch is run from Python.

    Args:
        arenas: where values live.
        table: the graph's types and windows.
        check_nan: raise after the first batch with a NaN.
        lines: where nodes were recorded, for errors.
        profile: filled in with the seconds that the batches of a type take, by its number; None: not asked for.
    """

    def __init__(
        self, arenas: Arenas, table: TypeTable, check_nan: bool, lines: Lines, profile: dict[int, float] | None
    ) -> None:
        self._arenas = arenas
        self._table = table
        self._backend = table.backend
        self._pool = table.pool
        self._check_nan = check_nan
        self._lines = lines
        self._profile = profile
        self._scratch: dict[Any, Any] = {}

    def run(self, plan: Plan, n_sources: int, inputs: list[Any], nodes: np.ndarray) -> Any:
        """Fill the rows of sources, then compute batch after batch.

        Args:
            plan: the first `n_sources` batches hold sources.
            inputs: arrays of the input nodes, found by payload.
            nodes: of the graph, batch after batch.

        Returns:
            The plan's index buffer on the device.
        """
        arenas, table = self._arenas, self._table
        for window in np.flatnonzero(plan.rows).tolist():
            arenas.reserve(window, int(plan.rows[window]))
        self._indices = self._backend.plan_indices(plan.indices)
        for batch in plan.batches[:n_sources].tolist():
            self._stage(Batch(*batch), plan.indices, inputs)
        programs = table.programs if current_options().fuse else None
        if programs is not None:
            programs.prepare(set(plan.batches["type"][n_sources:].tolist()), table)
        at, end = n_sources, len(plan.batches)
        interpreted = [False] * end
        if programs is not None:
            interpreted = (programs.tables.tasks["program"][plan.batches["type"]] != NONE).tolist()
        self._parameters: dict[int, list[Any]] = {}
        self._batches: list[Batch] = []
        memory: Memory | None = None
        one_by_one = self._check_nan or self._profile is not None
        while at < end:
            begin = at
            started = perf_counter()
            if programs is not None and interpreted[at]:
                if memory is None:  # rows of all arenas are reserved: they stay where they are
                    buffer = self._buffer("scratch", _BYTES, programs.scratch(plan))
                    memory = Memory(table.windows.columns(), arenas.addresses(), table.window, table.kept)
                at = self._backend.loops.run_batches(
                    at, at + 1 if one_by_one else end, plan, self._indices, memory, programs,
                    self._backend.address(buffer),
                )  # fmt: skip
            if at == begin:
                type = self._table.bound[plan.batch(at).type].type
                with self._lines.shown(type, partial(_of, nodes, plan, at)):
                    self._run_batch(plan, at)
                at += 1
            if self._profile is not None:
                self._backend.synchronize()
                kind = plan.batch(begin).type
                self._profile[kind] = self._profile.get(kind, 0.0) + perf_counter() - started
            if self._check_nan:
                self._check(plan, begin, nodes)
        return self._indices

    def release(self) -> None:
        """Give the buffers back."""
        while self._scratch:
            _, buffer = self._scratch.popitem()
            self._pool.release(buffer)

    def _stage(self, batch: Batch, indices: np.ndarray, inputs: list[Any]) -> None:
        kind, row, n, _, payload, _ = batch
        type = self._table.bound[kind]
        values: Any = None
        if type.type.op.payload:
            values = [inputs[i] for i in indices[payload : payload + n].tolist()]
        elif type.type.attributes:
            ((_, spec),) = type.type.attributes
            values = parameter_array(spec)
        type.call(self._arenas.array(type.window)[row : row + n], values)

    def _run_batch(self, plan: Plan, number: int) -> None:
        """Run one batch from Python."""
        if not self._batches:  # all at once, and only if there is one to run here
            self._batches = [Batch(*one) for one in plan.batches.tolist()]
            self._operands = [Operand(*one) for one in plan.operands.tolist()]
        kind, row, n, at, payload, offsets = self._batches[number]
        type = self._table.bound[kind]
        out = self._arenas.array(type.window)[row : row + n]
        given = self._parameters.get(kind)
        if given is None:
            given = self._parameters[kind] = type.parameters()
        operands = iter(self._operands[at : at + len(given)])
        used = 0
        found = []
        for slot, parameter in enumerate(given):
            if parameter is not None:
                found.append(parameter)
                continue
            operand = next(operands)
            if operand.access <= STRIDED:
                found.append(read_evenly(operand, self._arenas))
            else:
                spec = type.operands[slot]
                target = self._buffer("gather", out.dtype, used + operand.n * spec.size)
                self._gather(operand, plan, target, spec.size, used)
                found.append(target[used : used + operand.n * spec.size].reshape(operand.n, *spec.shape))
                used += operand.n * spec.size
        if type.type.op.variadic:
            found.append(self._indices[offsets : offsets + n + 1])
        for begin in range(payload, payload + n * type.type.op.payload, n):
            found.append(self._indices[begin : begin + n])  # noqa: PERF401 (mostly none or one)
        type.call(out, *found)

    def _gather(self, operand: Operand, plan: Plan, *target: Any) -> None:
        gather(operand, plan, self._indices, self._arenas, self._table, *target)

    def _buffer(self, use: str, dtype: np.dtype, entries: int) -> Any:
        buffer = self._scratch.get((use, dtype))
        if buffer is None or len(buffer) < entries:
            # Operands already gathered for this batch stay in the old buffer, which they keep alive.
            buffer = self._scratch[use, dtype] = self._pool.acquire(2 * entries, dtype)
        return buffer

    def _check(self, plan: Plan, number: int, nodes: np.ndarray) -> None:
        kind, row, n, *_ = plan.batch(number)
        type = self._table.bound[kind]
        out = self._arenas.array(type.window)[row : row + n]
        bad = self._backend.isnan(out.reshape(n, -1)).any(axis=1)
        if bad.any():
            found = np.asarray(self._backend.to_host(bad))
            where = self._lines.of(_of(nodes, plan, number)[found])
            raise EdBatchError(f"NaN in a result of {type.type} ({found.sum()} of {n} in its batch){where}")


def _of(nodes: np.ndarray, plan: Plan, number: int) -> np.ndarray:
    """The nodes of a batch."""
    end = int(plan.batches["n"][: number + 1].sum())
    return nodes[end - plan.batch(number).n : end]
