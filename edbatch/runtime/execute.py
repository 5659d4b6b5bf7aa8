"""Running a plan: sources are put in their rows, then compiled loops run batch after batch."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from edbatch.compiling.directory import Directory
from edbatch.errors import EdBatchError
from edbatch.graph.node_type import parameter_array
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.growing import GrowingPlan, Used
from edbatch.runtime.backward.saving import SavingTable
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store
from edbatch.runtime.type_table import TypeTable

_BYTES = np.dtype(np.uint8)


class Timed(NamedTuple):
    """A batch that has run; `start`: see `time.perf_counter`."""

    batch: int
    start: float
    seconds: float


class Executor:
    """Runs the batches of the plan of one graph.

    Args:
        graph: whose values they are.
        store: its records.
        profile: batches are appended as they have run; None: not asked for.
    """

    def __init__(self, graph: GraphState, store: Store, profile: list[Timed] | None) -> None:
        self._graph = graph
        self._store = store
        self._table, self._arenas = graph.table, graph.arenas
        self._backend = graph.table.backend
        self._profile = profile

    def run(
        self, plan: GrowingPlan, begin: Used, end: Used, n_sources: int, inputs: list[Any] | None,
        types: TypeTable | SavingTable,
    ) -> None:  # fmt: skip
        """Fill the rows of sources, then compute batch after batch.

        Args:
            plan: its batches from `begin` to `end` are run.
            n_sources: how many of these, the first, hold sources.
            inputs: arrays of the input nodes, found by payload; None: their rows have been filled.
            types: the graph's, or what stands for them in a run that saves.
        """
        first, last = begin.batches + n_sources, end.batches
        if n_sources:
            for batch in plan.batches[begin.batches : first].tolist():
                self._stage(batch, plan, inputs)
        if first == last:
            return
        programs, backend = types.programs, self._backend
        known = self._graph.known if types is self._table else None
        if known is not None and known.ready is not None and (_held := known.ready.held(programs)) is not None:
            size = known.ready.scratch
        else:
            kinds = set(plan.types[first:last].tolist())
            _held, size = programs.prepare(kinds, types), programs.scratch(plan, first, last)
            if known is not None:
                known.ready = programs.ready(kinds, size)
        scratch, _ = self._store.scratch.take(size, _BYTES)
        memory, values = self._memory(types), self._graph.integers[plan.integers[begin.integers : end.integers]]
        tables = plan, backend.lists(plan, values, begin.indices, begin.integers), memory
        if not self._graph.check_nan and self._profile is None:
            backend.run_batches(first, last, *tables, programs, scratch)
            return
        for at in range(first, last):
            started = perf_counter()
            backend.run_batches(at, at + 1, *tables, programs, scratch)
            if self._profile is not None:
                backend.synchronize()
                self._profile.append(Timed(at, started, perf_counter() - started))
            if self._graph.check_nan:
                self._check(plan, at)

    def _memory(self, types: TypeTable | SavingTable) -> Directory[Memory]:
        """Where values are; rows of all arenas are reserved: they stay where they are."""
        table, rows = self._table, self._arenas.rows
        columns, known = table.windows.columns(), self._store.memory
        if (
            known is None
            or known.tables.windows is not columns
            or known.tables.arenas is not rows
            or known.tables.results is not table.window
            or known.tables.kept is not types.kept
        ):
            scattered = table.scattered.tables(adding=False)
            known = self._store.memory = Directory(Memory(columns, rows, table.window, types.kept, *scattered))
        return known

    def _stage(self, batch: tuple[int, ...], plan: GrowingPlan, inputs: list[Any] | None) -> None:
        """Put the rows of a `Batch` of sources where they are computed with."""
        kind, row, n, _, begin, _ = batch
        type = self._table.bound[kind]
        values: Any = None
        if type.type.op.payload:
            if inputs is None:
                return
            integer = self._graph.integers.item
            values = [inputs[integer(at)] for at in plan.integers[begin : begin + n].tolist()]
        elif type.type.attributes:
            ((_, spec),) = type.type.attributes
            values = parameter_array(spec)
        type.type.op.forward(self._backend, self._arenas.array(type.window)[row : row + n], values)

    def _check(self, plan: GrowingPlan, number: int) -> None:
        tables = plan.tables
        kind, row, n, *_ = tables.batch(number)
        type = self._table.bound[kind]
        out = self._arenas.array(type.window)[row : row + n]
        found = self._backend.to_host((out != out).reshape(n, -1).any(axis=1))
        if found.any():
            end = int(tables.batches["n"][: number + 1].sum())
            where = self._graph.lines.of(plan.nodes[end - n : end][found])
            raise EdBatchError(f"NaN in a result of {type.type} ({found.sum()} of {n} in its batch){where}")
