"""The way back through some runs, planned: the same whenever the same has run, and gradients flow as they did."""

from __future__ import annotations

from typing import NamedTuple
from weakref import ref

import numpy as np

from edbatch.memory.plan.growing import GrowingPlan
from edbatch.runtime.backward.gradient_arenas import GradientArenas
from edbatch.runtime.backward.loops import plan_back
from edbatch.runtime.backward.route import Route
from edbatch.runtime.backward.saving import Stretch
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store


class Way(NamedTuple):
    """The way back through a stretch of runs.

    Attributes:
        plan: the batches. Types are those of the route.
        route: by which rules gradients flow, while there are no new windows; a way that is remembered outlives them.
        ready: the programs, whose numbers are in the plan.
        batches: of the plan.
        arena: of the gradient that is given.
        begins: see `RouteTables`.
        zeros, entries: of memory: the first hold gradients of values; how many there are.
        rows: of the sets that leave something for parameters how many nodes have each.
        parts: the batches that gradients flow into; none if no node is a parameter.
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

    def copy(self) -> Way:
        """The same, in tables that no other way is planned in."""
        return self._replace(plan=self.plan.copy())


class Flowed(NamedTuple):
    """Where gradients flowed from a root, in a graph that is remembered, and their way.

    Attributes:
        requires, sets: see `FlowColumns`.
        way: through its one run.
    """

    requires: np.ndarray
    sets: np.ndarray
    way: Way

    @property
    def bytes(self) -> int:
        """Of all arrays, about."""
        return 1000 + self.requires.nbytes + self.sets.nbytes + self.way.plan.bytes + self.way.begins.nbytes


def planned(
    stretch: Stretch, graph: GraphState, gradients: GradientArenas, store: Store, divided: tuple[int, int], root: int,
    route: Route,
) -> Way:  # fmt: skip
    """Plan a way back.

    Args:
        stretch: the runs.
        graph: its graph.
        gradients: of the graph's values.
        store: the graph's records: where gradients flow. Its plan of the way back is filled in.
        divided: into how many parts of batches they flow, and of how many sets.
        root: the node whose gradient is given.
        route: of these sets.
    """
    flow, plan = store.flow, store.back
    graph.arenas.see_layouts()
    begins, n_parts = route.tables.tables.begins, divided[0]
    n = len(begins) - len(route.buffers)
    arena = graph.table.arenas.item(graph.nodes.types.item(root))
    itemsize, zeros, entries = graph.table.windows.layouts[arena][1].itemsize, -1, 0
    while zeros < 0:
        plan.clear()
        zeros, entries = plan_back(
            (*stretch.extent, n_parts), (arena, itemsize), graph.table.backend.adds_in_groups, stretch.plan.entries,
            flow.entries, route.tables.entries, graph.arenas.rows[:n], gradients.rows(n), plan.entries,
        )  # fmt: skip
        if zeros < 0:
            sizes = plan.used
            plan.clear()
            plan.make_room(sizes)
    batches = plan.used.batches
    ready = route.ready(route.programs.scratch(plan, 0, batches))
    parts = flow.columns.parts["batch"][: n_parts if route.has_parameters else 0].copy()
    rows = [flow.columns.rows.item(number) for number in route.terms]
    # The route's own are those of the next stretch soon.
    return Way(plan, ref(route), ready, batches, arena, begins.copy(), zeros, entries, rows, parts)
