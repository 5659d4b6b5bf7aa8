"""The way back through one plan: run by compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.memory.plan.format import Plan
from edbatch.runtime.backward.gradient_arenas import GradientArenas
from edbatch.runtime.backward.parameter_gradients import add_sum, add_terms
from edbatch.runtime.backward.records import Flow
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.backward.tables import BackwardTables, ListRows
from edbatch.runtime.backward.type_rows import TypeRows
from edbatch.runtime.compile.derivatives import compiled
from edbatch.runtime.state import GraphState
from edbatch.runtime.type_table import BoundType

_BYTES = np.dtype(np.uint8)


class BackwardPlan:
    """One plan, gone through from its last batch to its first.

    Args:
        ran: the plan, and what its run has saved.
        graph: its graph.
        gradients: of the graph's values; filled.
        flow: where they flow.
    """

    def __init__(self, ran: Ran, graph: GraphState, gradients: GradientArenas, flow: Flow) -> None:
        self._ran = ran
        self._graph = graph
        self._gradients = gradients
        self._flow = flow
        self._pool = graph.table.pool
        self._backend = graph.table.backend
        table = graph.table
        self._rows = {
            one: self._type_rows(one)
            for one in flow.present.tolist()
            for kind in [table.output_sets.sets[one].kind]
            if not table.lists[kind] and not table.is_source[kind]
        }
        self._tables = BackwardTables(ran, graph, gradients, flow, self._rows)

    def run(self) -> None:
        """Compute the gradients of values."""
        tables, plan, backend = self._tables, self._tables.plan, self._backend
        changed = len(plan.indices) > len(self._ran.plan.indices)
        indices = backend.indices(plan.indices) if changed else self._ran.indices
        scratch = self._pool.acquire(tables.programs.scratch(plan), _BYTES)
        end, address = len(plan.batches), backend.address(scratch)
        for begin in range(end) if self._graph.check_nan else [0] * bool(end):
            stop = begin + 1 if self._graph.check_nan else end
            backend.run_batches(begin, stop, plan, indices, tables.memory, tables.programs, address)
            if self._graph.check_nan:
                self._check_batch(plan, begin)
        self._pool.release(scratch)

    def add_to_parameters(self) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        for rows in self._rows.values():
            add_terms(rows, self._backend)
        active = np.unique(self._flow.parts["batch"])
        for number in active[active < self._ran.n_sources].tolist():
            kind, row, n, *_ = self._ran.plan.batch(number)
            type = self._graph.table.bound[kind]
            if type.type.op is PARAMETER:
                found = self._gradients.array(type.window)[row : row + n]
                add_sum(parameter_of(type.type.attributes[0][1]), found, self._backend)

    def release(self) -> None:
        """Give the buffers back."""
        while self._rows:
            _, rows = self._rows.popitem()
            self._pool.release(rows.flat)
        self._tables.release()

    def _type_rows(self, one: int) -> TypeRows:
        table, ran = self._graph.table, self._ran
        n, operands = int(self._flow.rows[one]), int(self._flow.operands[one])
        kind, live = table.output_sets.sets[one]
        type = table.bound[kind]
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = table.output_sets.needed(one, [bool(operands >> min(slot, 62) & 1) for slot in range(slots)])
        how = compiled(type, needed, kind in ran.saved, live, self._backend)
        expect_unwritten(how.reads, ran.time)
        flat = self._pool.acquire(max(1, n * how.derivative.width), type.type.out.dtype)
        return TypeRows(type, how, flat, ran, self._graph.nodes, self._flow.sets, one, kind, n)

    @staticmethod
    def _computed(rows: ListRows, plan: Plan, n: int, first: int) -> list[Any]:
        """What a batch of derivatives that read lists computes, as rows."""
        names, before = rows.program.arguments, rows.program.given
        listed = next(at for at, name in enumerate(names) if rows.program.is_listed(name))
        elements = plan.operands_of(first + listed, 1)[0].n
        counts = [elements if rows.program.is_listed(name) else n for name in names[before:]]
        sizes = zip(rows.flats, counts, rows.program.sizes[before:], strict=True)
        return [flat[: count * size].reshape(count, size) for flat, count, size in sizes]

    def _check_batch(self, plan: Plan, number: int) -> None:
        """Check a batch of derivatives."""
        kind, begin, n, first, *_ = plan.batch(number)
        rows = self._tables.of_program.get(kind)
        if kind in self._tables.over_lists:
            over_lists = self._tables.over_lists[kind]
            for found in self._computed(over_lists, plan, n, first):
                self._check(found, over_lists.type)
        if rows is not None:
            width = rows.how.derivative.width
            self._check(rows.flat[begin * width : (begin + n) * width].reshape(n, width), rows.type)

    def _check(self, computed: Any, type: BoundType) -> None:
        bad = int(self._backend.to_host((computed != computed).any(axis=1)).sum())
        if bad:
            where = self._graph.lines.of(self._nodes_of(type))
            raise EdBatchError(f"NaN in the gradient of {type.type} ({bad} of {len(computed)} in its batch){where}")

    def _nodes_of(self, type: BoundType) -> np.ndarray:
        """The nodes of a type that gradients flow into; which of them a batch has, its tables do not say."""
        nodes = self._ran.nodes[self._flow.sets[self._ran.nodes] >= 0]
        found: np.ndarray = nodes[self._graph.nodes.types[nodes] == self._graph.table.local[type.type.id]]
        return found
