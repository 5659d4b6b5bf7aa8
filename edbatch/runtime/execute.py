"""Running a plan: sources are put in their rows, then compiled loops run batch after batch."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.node_type import parameter_array
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.format import Batch, Plan
from edbatch.runtime.backward.saving import SavingTable
from edbatch.runtime.state import GraphState
from edbatch.runtime.type_table import TypeTable

_BYTES = np.dtype(np.uint8)


class Executor:
    """Runs the batches of one plan after another over the arenas of one graph.

    Args:
        graph: whose values they are.
        profile: filled in with the seconds that the batches of a type take, by its number; None: not asked for.
    """

    def __init__(self, graph: GraphState, profile: dict[int, float] | None) -> None:
        self._graph = graph
        self._table, self._arenas = graph.table, graph.arenas
        self._backend = graph.table.backend
        self._pool = graph.table.pool
        self._profile = profile
        self._scratch: Any = None

    def run(
        self, plan: Plan, n_sources: int, inputs: list[Any], nodes: np.ndarray, types: TypeTable | SavingTable
    ) -> Any:
        """Fill the rows of sources, then compute batch after batch.

        Args:
            plan: the first `n_sources` batches hold sources.
            inputs: arrays of the input nodes, found by payload.
            nodes: of the graph, batch after batch.
            types: the graph's, or what stands for them in a run that saves.

        Returns:
            The plan's index buffer on the device.
        """
        arenas, table = self._arenas, self._table
        for window in np.flatnonzero(plan.rows).tolist():
            arenas.reserve(window, int(plan.rows[window]))
        indices = self._backend.indices(plan.indices)
        for batch in plan.batches[:n_sources].tolist():
            self._stage(Batch(*batch), plan.indices, inputs)
        programs, backend, end = types.programs, self._backend, len(plan.batches)
        if n_sources == end:
            return indices
        _held = programs.prepare(set(plan.batches["type"][n_sources:].tolist()), types)
        scratch = self._room(programs.scratch(plan))
        # Rows of all arenas are reserved: they stay where they are.
        scattered = table.scattered.tables(adding=False)
        memory = Memory(table.windows.columns(), arenas.addresses(), table.window, types.kept, *scattered)
        if not self._graph.check_nan and self._profile is None:
            backend.run_batches(n_sources, end, plan, indices, memory, programs, scratch)
            return indices
        for at in range(n_sources, end):
            started = perf_counter()
            backend.run_batches(at, at + 1, plan, indices, memory, programs, scratch)
            if self._profile is not None:
                backend.synchronize()
                kind = plan.batch(at).type
                self._profile[kind] = self._profile.get(kind, 0.0) + perf_counter() - started
            if self._graph.check_nan:
                self._check(plan, at, nodes)
        return indices

    def release(self) -> None:
        """Give the scratch buffer back."""
        if self._scratch is not None:
            buffer, self._scratch = self._scratch, None
            self._pool.release(buffer)

    def _room(self, size: int) -> int:
        """The address of a scratch buffer of so many bytes."""
        if self._scratch is None or len(self._scratch) < size:
            self.release()
            self._scratch = self._pool.acquire(2 * size, _BYTES)
        return self._backend.address(self._scratch)

    def _stage(self, batch: Batch, indices: np.ndarray, inputs: list[Any]) -> None:
        kind, row, n, _, payload, _ = batch
        type = self._table.bound[kind]
        values: Any = None
        if type.type.op.payload:
            values = [inputs[i] for i in indices[payload : payload + n].tolist()]
        elif type.type.attributes:
            ((_, spec),) = type.type.attributes
            values = parameter_array(spec)
        type.type.op.forward(self._backend, self._arenas.array(type.window)[row : row + n], values)

    def _check(self, plan: Plan, number: int, nodes: np.ndarray) -> None:
        kind, row, n, *_ = plan.batch(number)
        type = self._table.bound[kind]
        out = self._arenas.array(type.window)[row : row + n]
        found = self._backend.to_host((out != out).reshape(n, -1).any(axis=1))
        if found.any():
            where = self._graph.lines.of(_of(nodes, plan, number)[found])
            raise EdBatchError(f"NaN in a result of {type.type} ({found.sum()} of {n} in its batch){where}")


def _of(nodes: np.ndarray, plan: Plan, number: int) -> np.ndarray:
    """The nodes of a batch."""
    end = int(plan.batches["n"][: number + 1].sum())
    return nodes[end - plan.batch(number).n : end]
