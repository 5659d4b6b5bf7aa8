"""The way back through some runs as a plan of its own, which the same compiled loops run: derivatives, and additions.

A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition to an operand,
the first, of rows, the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from edbatch.compiling.directory import Directory
from edbatch.errors import EdBatchError
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.sources import PARAMETER
from edbatch.graph.views import NODE_MASK
from edbatch.memory.plan.format import Plan
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.runtime.backward.loops import plan_back
from edbatch.runtime.backward.parameter_gradients import Gatherer, TypeRows, add_sum, unless_frozen
from edbatch.runtime.backward.placing import GradientArenas, place
from edbatch.runtime.backward.records import OWN, SAVED
from edbatch.runtime.backward.route import Route
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store
from edbatch.runtime.type_columns import BoundType

_BYTES = np.dtype(np.uint8)


class SeedPlace(NamedTuple):
    """Where some gradients that are given are added.

    Attributes:
        group: see `Backward`; chosen: which of the group.
        window, rows: to which rows of a window of gradients.
    """

    group: int
    chosen: np.ndarray | slice
    window: int
    rows: np.ndarray | slice


class Way(NamedTuple):
    """The way back through a stretch of runs: the same whenever the same has run, and gradients flow as they did.

    Attributes:
        plan: the batches. Types are those of the route; the numbers of programs are those of `ready`.
        route: by which rules gradients flow, while there are no new windows; a way that is remembered outlives them.
        arena: of the first gradient that is given; begins: see `RouteTables`.
        zeros, entries: of memory: the first hold gradients of values; how many there are.
        rows: of the sets that leave something for parameters how many nodes have each.
        parts: the batches that gradients flow into; none if no node is a parameter.
        requires, sets: of a way that is remembered, see `FlowColumns`.
        places: where it begins, but of one whole node.
    """

    plan: GrowingPlan
    route: ref[Route]
    ready: Ready
    batches: int
    arena: int
    begins: np.ndarray
    zeros: int
    entries: int
    rows: list[int]
    parts: np.ndarray
    requires: np.ndarray
    sets: np.ndarray
    places: Sequence[SeedPlace]

    def copy(self) -> Way:
        """The same, in tables that no other way is planned in."""
        return self._replace(plan=self.plan.copy(), requires=self.requires.copy(), sets=self.sets.copy())

    @property
    def bytes(self) -> int:
        """Of all arrays, about."""
        return 1000 + self.requires.nbytes + self.sets.nbytes + self.plan.bytes + self.begins.nbytes


def planned(
    stretch: Ran, graph: GraphState, gradients: GradientArenas, store: Store, divided: tuple[int, int],
    roots: np.ndarray, places: Sequence[SeedPlace], route: Route,
) -> Way:  # fmt: skip
    """Plan a way back in the store's plan for that.

    Args:
        divided: into how many parts of batches gradients flow, and of how many sets.
        roots: ids of the expressions whose gradients are given; places: see `Way`.
        route: of these sets.
    """
    flow, plan = store.flow, store.back
    graph.arenas.see_layouts()
    begins, n_parts = route.tables.tables.begins, divided[0]
    n = len(begins) - len(route.buffers)
    arenas = graph.table.arenas[graph.nodes.types[roots & NODE_MASK]]
    arena = arenas.item(0)
    itemsize, zeros, entries = graph.table.windows.layouts[arena][1].itemsize, -1, 0
    while zeros < 0:
        plan.clear()
        zeros, entries = plan_back(
            (*stretch.extent, n_parts), (arenas, itemsize), graph.table.backend.adds_in_groups, graph.plan.entries,
            flow.entries, route.tables.entries, graph.arenas.rows[:n], gradients.rows(n), plan.entries,
        )  # fmt: skip
        if zeros < 0:
            sizes = plan.used
            plan.clear()
            plan.make_room(sizes)
    batches = plan.used.batches
    ready = route.programs.ready(route.kinds, route.programs.scratch(plan, 0, batches))
    parts = flow.columns.parts["batch"][: n_parts if route.has_parameters else 0].copy()
    rows = [flow.columns.rows.item(number) for number in route.terms]
    # The route's own are those of the next stretch soon.
    requires, sets = (column[: graph.nodes.n] for column in flow.columns[:2])
    return Way(
        plan, ref(route), ready, batches, arena, begins.copy(), zeros, entries, rows, parts, requires, sets, places
    )


class BackwardPlan:
    """Runs, gone through from their last batch to their first; gradients of the graph's values are filled in.

    Args:
        route, held: of the way; what is to be held meanwhile.
        sets: see `FlowColumns`.

    Attributes:
        plan: the batches. Types are those of the route, and of `programs`.
    """

    def __init__(
        self, stretch: Ran, way: Way, route: Route, held: list[Any], graph: GraphState, gradients: GradientArenas,
        store: Store, sets: np.ndarray,
    ) -> None:  # fmt: skip
        self._held, self._stretch, self._way, self._graph, self._gradients = held, stretch, way, graph, gradients
        self._store, self._sets = store, sets
        self._table, self._backend, self._route, self.plan = graph.table, graph.table.backend, route, way.plan
        self.programs = route.programs
        expect_unwritten(route.reads, stretch.time)
        self._place()

    def _place(self) -> None:
        """Have memory for all that is computed."""
        table, way, route, arenas = self._table, self._way, self._route, self._graph.arenas
        arenas.see_layouts()
        n = len(way.begins) - len(route.buffers)
        values, gradients = arenas.rows[:n], self._gradients.rows(n)
        dtype = table.windows.layouts[way.arena][1]
        address, self._flat = self._gradients.acquire(way.entries, way.zeros, dtype)
        place(address, dtype.itemsize, values, gradients, way.begins, route.tables.entries)
        if self._stretch.saved:
            for at, buffer in enumerate(route.buffers):
                if buffer.rows == SAVED:
                    flat = self._stretch.saved[buffer.kind].flat
                    route.words[2 * n + at, :2] = self._backend.address(flat), dtype.itemsize * buffer.width
        self._n = n

    def gradient_of(self, root: int) -> Any:
        """The entries of the gradient of the first node that is given one, in the way back that begins there."""
        arena = self._way.arena
        width = self._table.windows.widths()[arena]
        begin = self._way.begins.item(arena) + width * self._graph.nodes.row.item(root)
        return self._flat[begin : begin + width]

    def run(self) -> None:
        """Compute the gradients of values."""
        plan, backend = self.plan, self._backend
        end = self._way.batches
        if not end:
            return
        integers, memory = self._graph.integers.take(plan.integers[: plan.used.integers]), self._route.memory
        if self._route.calls:
            shared = memory.tables
            memory = Directory(shared._replace(windows=shared.windows.copy(), arenas=shared.arenas.copy()))
        tables = plan, backend.lists(plan, integers), memory
        scratch, _ = self._store.scratch.take(self._way.ready.scratch, _BYTES)
        each = 1 if self._graph.check_nan else end
        for begin in range(0, end, each):
            backend.run_batches(begin, begin + each, *tables, self.programs, scratch)
            if self._graph.check_nan:
                self._check_batch(plan.tables, begin)

    def add_to_parameters(self, gatherer: Gatherer = unless_frozen) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        way, route, table, stretch = self._way, self._route, self._table, self._stretch
        for number, n in zip(route.terms, way.rows, strict=True):
            how, begin = route.hows[number], way.begins.item(self._n + route.own[number])
            width, kind = how.width, table.output_sets.sets[number].kind
            computed = self._flat[begin : begin + n * width].reshape(n, width)
            TypeRows(how, computed, stretch, self._graph, self._sets, number, kind).add_terms(gatherer)
        if not route.has_parameters:
            return
        batches = self._graph.plan.tables.batches[stretch.begin.batches : stretch.end.batches]
        active = np.unique(self._way.parts)
        for kind, row, n, *_ in batches[active[table.is_source[batches["type"][active]]]].tolist():
            type = table.bound[kind]
            if type.type.op is PARAMETER:
                found = self._gradients.array(type.window)[row : row + n]
                parameter = gatherer(parameter_of(type.type.attributes[0][1]))
                if parameter is not None:
                    add_sum(parameter, found, self._backend)

    def _check_batch(self, plan: Plan, number: int) -> None:
        """Check a batch of derivatives, or of what flows to lists."""
        kind, first_row, n, first, *_ = plan.batch(number)
        computed = int(self._route.of_types[kind])
        if computed < 0:
            return
        for buffer, begin in zip(self._route.buffers, self._way.begins[self._n :].tolist(), strict=True):
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
            where = self._graph.lines(self._nodes_of(type))
            raise EdBatchError(f"NaN in the gradient of {type.type} ({bad} of {len(computed)} in its batch){where}")

    def _nodes_of(self, type: BoundType) -> np.ndarray:
        """The nodes of a type that gradients flow into; which of them a batch has, its tables do not say."""
        nodes = self._graph.plan.nodes[self._stretch.begin.nodes : self._stretch.end.nodes]
        nodes = nodes[self._sets[nodes] >= 0]
        return nodes[self._graph.nodes.types[nodes] == self._graph.table.numbers[type.type.id]]
