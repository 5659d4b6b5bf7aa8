"""The way back through some runs as a plan of its own, which the same compiled loops run: derivatives, and additions.

A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition to an operand,
the first, of rows, the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.sources import PARAMETER
from edbatch.memory.plan.format import Plan
from edbatch.runtime.backward.gradient_arenas import GradientArenas
from edbatch.runtime.backward.loops import plan_back
from edbatch.runtime.backward.parameter_gradients import add_sum, add_terms
from edbatch.runtime.backward.placing import place
from edbatch.runtime.backward.records import OWN, SAVED
from edbatch.runtime.backward.routes import routes_of
from edbatch.runtime.backward.saving import Stretch
from edbatch.runtime.backward.type_rows import TypeRows
from edbatch.runtime.bound_type import BoundType
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store

_BYTES = np.dtype(np.uint8)


class BackwardPlan:
    """Runs, gone through from their last batch to their first.

    Args:
        stretch: the runs.
        graph: its graph.
        gradients: of the graph's values; filled.
        store: the graph's records: where gradients flow; its plan of the way back is filled in, and is that of these
            runs until those before them have one.
        divided: into how many parts of batches they flow, and of how many sets.
        root: the node whose gradient is given.

    Attributes:
        plan: the batches. Types are those of the route.
        programs: of the types.
    """

    def __init__(
        self, stretch: Stretch, graph: GraphState, gradients: GradientArenas, store: Store, divided: tuple[int, int],
        root: int,
    ) -> None:  # fmt: skip
        self._stretch, self._graph, self._gradients, self._store = stretch, graph, gradients, store
        self._table, self._backend, self._flow, self.plan = graph.table, graph.table.backend, store.flow, store.back
        n_parts, n_sets = divided
        flow = self._flow
        routes = routes_of(graph.table)
        self._route, self._held = routes.find(flow.columns.present[:n_sets], stretch.saved)
        self.programs = self._route.programs
        if self._route.has_parameters:
            self._parts = flow.columns.parts["batch"][:n_parts].copy()
        expect_unwritten(self._route.reads, stretch.time)
        self._place(n_parts, root)

    def _place(self, n_parts: int, root: int) -> None:
        """Make the plan, and have memory for all that it computes."""
        graph, table, route, plan, arenas = self._graph, self._table, self._route, self.plan, self._graph.arenas
        arenas.see_layouts()
        n = len(route.tables.tables.begins) - len(route.buffers)
        values, gradients = arenas.rows[:n], self._gradients.rows(n)
        self._arena = arena = table.arenas.item(graph.nodes.types.item(root))
        dtype = table.windows.layouts[arena][1]
        zeros = -1
        while zeros < 0:
            plan.clear()
            zeros, entries = plan_back(
                (*self._stretch.extent, n_parts), (arena, dtype.itemsize), self._backend.adds_in_groups,
                self._stretch.plan.entries, self._flow.entries, route.tables.entries, values, gradients, plan.entries,
            )  # fmt: skip
            if zeros < 0:
                sizes = plan.used
                plan.clear()
                plan.make_room(sizes)
        address, self._flat = self._gradients.acquire(entries, zeros, dtype)
        place(address, dtype.itemsize, values, gradients, route.tables.entries)
        if self._stretch.saved:
            for at, buffer in enumerate(route.buffers):
                if buffer.rows == SAVED:
                    flat = self._stretch.saved[buffer.kind].flat
                    route.words[2 * n + at, :2] = self._backend.address(flat), dtype.itemsize * buffer.width
        begins, rows = route.tables.tables.begins, self._flow.columns.rows
        self._begin, self._begins = begins.item(arena), begins[n:].tolist()
        sets = self._flow.columns.sets
        self._rows = [
            TypeRows(
                route.hows[number], self._flat, self._begins[route.own[number]], rows.item(number), self._stretch,
                graph.nodes, sets, number, table.output_sets.sets[number].kind,
            )
            for number in route.terms
        ]  # fmt: skip

    def gradient_of(self, root: int) -> Any:
        """The entries of the gradient of the node that is given one, if this is the way back that begins there."""
        width = self._table.windows.widths()[self._arena]
        begin = self._begin + width * self._graph.nodes.row.item(root)
        return self._flat[begin : begin + width]

    def run(self) -> None:
        """Compute the gradients of values."""
        plan, backend = self.plan, self._backend
        end = plan.used.batches
        if not end:
            return
        indices, size = backend.indices(plan), self.programs.scratch(plan, 0, end)
        scratch, _ = self._store.scratch.take(size, _BYTES)
        each = 1 if self._graph.check_nan else end
        for begin in range(0, end, each):
            backend.run_batches(begin, begin + each, plan, indices, self._route.memory, self.programs, scratch)
            if self._graph.check_nan:
                self._check_batch(plan.tables, begin)

    def add_to_parameters(self) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        for rows in self._rows:
            add_terms(rows, self._backend)
        if not self._route.has_parameters:
            return
        batches, table = self._stretch.batches, self._table
        active = np.unique(self._parts)
        for kind, row, n, *_ in batches[active[table.is_source[batches["type"][active]]]].tolist():
            type = table.bound[kind]
            if type.type.op is PARAMETER:
                found = self._gradients.array(type.window)[row : row + n]
                add_sum(parameter_of(type.type.attributes[0][1]), found, self._backend)

    def _check_batch(self, plan: Plan, number: int) -> None:
        """Check a batch of derivatives, or of what flows to lists."""
        kind, first_row, n, first, *_ = plan.batch(number)
        computed = int(self._route.of_types[kind])
        if computed < 0:
            return
        for buffer, begin in zip(self._route.buffers, self._begins, strict=True):
            if buffer.set != computed or buffer.rows == SAVED:
                continue
            rows, width = n, buffer.width
            if buffer.rows >= 0:
                rows = plan.operands_of(first + buffer.rows, 1)[0].n
            begin += first_row * width if buffer.rows == OWN else 0
            found = self._flat[begin : begin + rows * width].reshape(rows, width)
            self._check(found, self._table.bound[buffer.kind])

    def _check(self, computed: Any, type: BoundType) -> None:
        bad = int(self._backend.to_host((computed != computed).any(axis=1)).sum())
        if bad:
            where = self._graph.lines.of(self._nodes_of(type))
            raise EdBatchError(f"NaN in the gradient of {type.type} ({bad} of {len(computed)} in its batch){where}")

    def _nodes_of(self, type: BoundType) -> np.ndarray:
        """The nodes of a type that gradients flow into; which of them a batch has, its tables do not say."""
        nodes = self._stretch.nodes
        nodes = nodes[self._flow.columns.sets[nodes] >= 0]
        found: np.ndarray = nodes[self._graph.nodes.types[nodes] == self._graph.table.numbers[type.type.id]]
        return found
