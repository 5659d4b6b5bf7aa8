"""The way back through one plan: run by compiled loops, and batch by batch from Python where they stop."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.cell.derivative import Given
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.format import SLICE, STRIDED, Operand, Plan
from edbatch.runtime.backward.operand_rows import GradientArenas, add, gather, read_evenly
from edbatch.runtime.backward.parameter_gradients import add_sum, add_terms
from edbatch.runtime.backward.ran import Ran
from edbatch.runtime.backward.tables import BackwardTables, ListRows, SharedRows
from edbatch.runtime.backward.type_rows import TypeRows
from edbatch.runtime.compile.derivatives import compiled
from edbatch.runtime.lines import Lines
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import BoundType, TypeTable

_BYTES = np.dtype(np.uint8)


class BackwardPlan:
    """One plan, gone through from its last batch to its first.

    Args:
        ran: the plan, and what its run has saved.
        arenas: the values.
        gradients: of the values; filled.
        table: the graph's types.
        nodes: the graph's.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none.
        parts, per_set, operands: from `reach.per_batch`.
        stopped: per window of values, whether no gradient flows to what is read through it.
        check_nan, lines: as of `Backward`.
    """

    def __init__(
        self, ran: Ran, arenas: Arenas, gradients: GradientArenas, table: TypeTable, nodes: Nodes, sets: np.ndarray,
        parts: np.ndarray, per_set: np.ndarray, operands: np.ndarray, stopped: np.ndarray,
        check_nan: bool, lines: Lines,
    ) -> None:  # fmt: skip
        self._ran = ran
        self._arenas = arenas
        self._gradients = gradients
        self._table = table
        self._nodes = nodes
        self._sets = sets
        self._active = np.unique(parts["batch"])
        self._pool = table.pool
        self._backend = table.backend
        self._check_nan = check_nan
        self._lines = lines
        self._rows = {
            one: self._type_rows(one, int(per_set[one]), int(operands[one]))
            for one in np.flatnonzero(per_set).tolist()
            for kind in [table.output_sets.sets[one].kind]
            if not table.lists[kind] and not table.is_source[kind]
        }
        self._tables = BackwardTables(
            ran, arenas, gradients, table, self._rows, sets, parts, per_set, operands, stopped
        )

    def run(self) -> None:
        """Compute the gradients of values."""
        tables, plan, backend = self._tables, self._tables.plan, self._backend
        changed = len(plan.indices) > len(self._ran.plan.indices)
        self._indices = backend.plan_indices(plan.indices) if changed else self._ran.indices
        scratch = self._pool.acquire(tables.programs.scratch(plan), _BYTES)
        at, end = 0, len(plan.batches)
        while at < end:
            begin = at
            at = backend.loops.run_batches(
                at, at + 1 if self._check_nan else end, plan, self._indices, tables.memory, tables.programs,
                backend.address(scratch),
            )  # fmt: skip
            if at == begin:
                self._run_batch(plan, at)
                at += 1
            if self._check_nan:
                self._check_batch(plan, begin)
        self._pool.release(scratch)

    def add_to_parameters(self) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        for rows in self._rows.values():
            add_terms(rows, self._backend)
        for number in self._active[self._active < self._ran.n_sources].tolist():
            kind, row, n, *_ = self._ran.plan.batch(number)
            type = self._table.bound[kind]
            if type.type.op is PARAMETER:
                found = self._gradients.array(type.window)[row : row + n]
                add_sum(parameter_of(type.type.attributes[0][1]), found, self._backend)

    def release(self) -> None:
        """Give the buffers back."""
        while self._rows:
            _, rows = self._rows.popitem()
            self._pool.release(rows.flat)
        self._tables.release()

    def _type_rows(self, one: int, n: int, operands: int) -> TypeRows:
        kind, live = self._table.output_sets.sets[one]
        type = self._table.bound[kind]
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = [bool(operands >> min(slot, 62) & 1) for slot in range(slots)]
        needed = self._table.output_sets.needed(one, needed)
        how = compiled(type, needed, kind in self._ran.saved, live, self._backend)
        expect_unwritten(how.reads, self._ran.time)
        flat = self._pool.acquire(max(1, n * how.derivative.width), type.type.out.dtype)
        return TypeRows(type, kind, one, how, n, flat, self._ran, self._nodes, self._sets)

    def _run_batch(self, plan: Plan, number: int) -> None:
        """Run one batch from Python."""
        kind, begin, n, first, payload, positions = plan.batch(number)
        tables = self._tables
        if kind in tables.over_lists:
            self._back_over_lists(plan, tables.over_lists[kind], n, first, positions)
        elif kind < tables.additions:
            rows = tables.of_program[kind]
            operands = plan.operands_of(first, len(rows.how.derivative.given))
            with self._lines.shown(rows.type.type, partial(self._nodes_of, rows.type)):
                self._back(plan, rows, begin, n, operands, payload)
        elif kind in tables.of_lists:
            self._share(plan, tables.of_lists[kind], n, first, positions)
        else:
            source, width, column, entries = tables.source(int(tables.memory.results[kind]), self._gradients)
            (operand,) = plan.operands_of(first, 1)
            operand = operand._replace(window=operand.window - tables.n_windows)
            add(
                operand, positions, plan, self._indices, self._gradients, self._table,
                source, begin * width + column, width, entries,
            )  # fmt: skip

    def _back(
        self, plan: Plan, rows: TypeRows, begin: int, n: int, operands: list[Operand], payload: int
    ) -> None:  # fmt: skip
        """Compute a batch of derivatives; its rows begin with row `begin`."""
        type, how, width = rows.type, rows.how, rows.how.derivative.width
        given: list[Any] = []
        buffers: list[Any] = []
        for (source, number), operand in zip(how.derivative.given, operands, strict=True):
            if source is Given.OPERAND:
                given.append(self._read(operand, rows.specs[number], plan, self._indices, buffers))
                continue
            if source is Given.SAVED:
                assert rows.saved is not None
                array = rows.saved.value(number, 0, len(rows.saved.rows))
            else:
                array = (self._arenas if source is Given.RESULT else self._gradients).array(type.window)
            start = operand.first
            given.append(
                array[start : start + n] if operand.access == SLICE else array[self._indices[start : start + n]]
            )
        integers = [self._indices[at : at + n] for at in range(payload, payload + n * type.type.op.payload, n)]
        assert how.program is not None
        how.program(rows.flat[begin * width : (begin + n) * width].reshape(n, width), *given, *integers)
        for buffer in buffers:
            self._pool.release(buffer)

    def _share(self, plan: Plan, shared: SharedRows, n: int, first: int, offsets: int) -> None:
        """Compute a batch of what flows to lists, from elements that compiled loops cannot read."""
        type, task = shared.type, shared.of_lists.task
        spec, buffers, rows = type.type.out, [], []  # type: Any, list[Any], list[Any]
        elements, *of_lists = plan.operands_of(first, task.operands)
        rows.append(self._read(elements, spec, plan, self._indices, buffers))
        for array, operand in zip(
            (self._gradients.array(type.window), self._arenas.array(type.window)), of_lists, strict=True
        ):
            start = operand.first
            rows.append(
                array[start : start + n] if operand.access == SLICE else array[self._indices[start : start + n]]
            )
        out = shared.flat[: elements.n * spec.size].reshape(elements.n, *spec.shape)
        contiguous = [self._backend.ascontiguousarray(one) for one in rows]
        self._backend.loops.compute_lists(task, self._indices[offsets : offsets + n + 1], contiguous, out)
        for buffer in buffers:
            self._pool.release(buffer)

    def _back_over_lists(self, plan: Plan, rows: ListRows, n: int, first: int, offsets: int) -> None:
        """Compute a batch of derivatives that read lists, of operands that compiled loops cannot read."""
        type, buffers, given = rows.type.type, [], []  # type: Any, list[Any], list[Any]
        *operands, gradient = plan.operands_of(first, len(type.operands) + 1)
        for spec, operand in zip(type.operands, operands, strict=True):
            given.append(self._read(operand, spec, plan, self._indices, buffers))
        array, start = self._gradients.array(rows.type.window), gradient.first
        given.append(array[start : start + n] if gradient.access == SLICE else array[self._indices[start : start + n]])
        given += self._computed(rows, plan, n, first)
        rows.program(None, *given, self._indices[offsets : offsets + n + 1])
        for buffer in buffers:
            self._pool.release(buffer)

    @staticmethod
    def _computed(rows: ListRows, plan: Plan, n: int, first: int) -> list[Any]:
        """What a batch of derivatives that read lists computes, as rows."""
        names, before = rows.program.arguments, len(rows.type.type.operands) + 1
        listed = next(at for at, name in enumerate(names) if rows.program.is_listed(name))
        elements = plan.operands_of(first + listed, 1)[0].n
        counts = [elements if rows.program.is_listed(name) else n for name in names[before:]]
        sizes = zip(rows.flats, counts, rows.program.sizes[before:], strict=True)
        return [flat[: count * size].reshape(count, size) for flat, count, size in sizes]

    def _read(self, operand: Operand, spec: Any, plan: Plan, indices: Any, buffers: list[Any]) -> Any:
        if operand.access <= STRIDED:
            return read_evenly(operand, self._arenas)
        buffers.append(self._pool.acquire(operand.n * spec.size, spec.dtype))
        gather(operand, plan, indices, self._arenas, self._table, buffers[-1], spec.size)
        return buffers[-1][: operand.n * spec.size].reshape(operand.n, *spec.shape)

    def _check_batch(self, plan: Plan, number: int) -> None:
        """Check a batch of derivatives, or of what flows to lists."""
        kind, begin, n, first, *_ = plan.batch(number)
        rows, shared = self._tables.of_program.get(kind), self._tables.of_lists.get(kind)
        if kind in self._tables.over_lists:
            over_lists = self._tables.over_lists[kind]
            for found in self._computed(over_lists, plan, n, first):
                self._check(found, over_lists.type)
        if rows is not None:
            width = rows.how.derivative.width
            self._check(rows.flat[begin * width : (begin + n) * width].reshape(n, width), rows.type)
        if shared is not None:
            n, width = plan.operands_of(first, 1)[0].n, shared.type.type.out.size
            self._check(shared.flat[: n * width].reshape(n, width), shared.type)

    def _check(self, computed: Any, type: BoundType) -> None:
        if self._check_nan:
            bad = int(self._backend.isnan(computed.reshape(len(computed), -1)).any(axis=1).sum())
            if bad:
                where = self._lines.of(self._nodes_of(type))
                raise EdBatchError(f"NaN in the gradient of {type.type} ({bad} of {len(computed)} in its batch){where}")

    def _nodes_of(self, type: BoundType) -> np.ndarray:
        """The nodes of a type that gradients flow into; which of them a batch has, its tables do not say."""
        nodes = self._ran.nodes[self._sets[self._ran.nodes] >= 0]
        found: np.ndarray = nodes[self._nodes.types[nodes] == self._table.local[type.type.id]]
        return found
