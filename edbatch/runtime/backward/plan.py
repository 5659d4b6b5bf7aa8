"""The backward pass through some runs as a plan of its own, which the same compiled loops run.

A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition to an operand,
the first, of rows, the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.sources import PARAMETER
from edbatch.graph.views import NODE_MASK
from edbatch.memory.plan.arenas import GradientRows, PlacedRows
from edbatch.memory.plan.format import Plan
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.loops import place_rows, plan_back
from edbatch.runtime.backward.parameter_gradients import Gatherer, TypeRows, add_sum, unless_frozen
from edbatch.runtime.backward.rules import ChosenRules, GradientRule, Rules, rules_of
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.execute import memory_of, run_batches
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store

_BYTES = np.dtype(np.uint8)
_NONE = np.zeros(0, np.int64)


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


class BackwardPlan(NamedTuple):
    """The backward plan of a stretch of runs: the same whenever the same has run, and gradients flow as they did.

    Attributes:
        plan: the batches.
        chosen: by which rules gradients flow; ready: the programs.
        batches: how many.
        rows: where gradients, and what is computed, lie.
        terms: per rule that leaves something for parameters, in which arena, the first row, and how many.
        parts: the batches that gradients flow into; none if no node is a parameter.
        requires, sets: of a plan that is cached, see `FlowColumns`.
        places: where gradients that are given go.
    """

    plan: GrowingPlan
    chosen: ChosenRules
    ready: Ready
    batches: int
    rows: PlacedRows
    terms: list[tuple[GradientRule, int, int, int]]
    parts: np.ndarray
    requires: np.ndarray
    sets: np.ndarray
    places: Sequence[SeedPlace]

    def copy(self) -> BackwardPlan:
        """The same, in tables that no other is planned in."""
        return self._replace(plan=self.plan.copy(), requires=self.requires.copy(), sets=self.sets.copy())

    @property
    def bytes(self) -> int:
        """Of all arrays, about."""
        return 1000 + self.requires.nbytes + self.sets.nbytes + self.plan.bytes


def plan_backward(
    stretch: Ran, graph: GraphState, store: Store, divided: tuple[int, int], roots: np.ndarray,
    places: Sequence[SeedPlace], rules: Rules,
) -> tuple[BackwardPlan, list[Any]]:  # fmt: skip
    """Plan a backward pass, in the store's plan for that.

    Args:
        divided: into how many parts of batches gradients flow, and of how many sets.
        roots: ids of the expressions whose gradients are given; places: see `BackwardPlan`.

    Returns:
        The plan, and what is to be held while it runs.
    """
    flow, plan, table, n_parts = store.flow, store.back, graph.table, divided[0]
    chosen = rules.choose(flow.columns.present[: divided[1]], stretch.saved)
    tables = rules.tables
    graph.arenas.see_layouts()
    used, programs = graph.arenas.used, table.programs
    rows = np.zeros(len(used), np.int64)
    at_roots = table.arenas[graph.nodes.types[roots & NODE_MASK]]
    rows[at_roots + GRADIENT] = used[at_roots]
    saved = _NONE
    if stretch.saved:
        saved = np.zeros(table.count, np.int64)
        for kind, one in stretch.saved.items():
            saved[kind] = one.first
    plan.clear()
    while not plan_back(
        (*stretch.extent, n_parts), table.backend.adds_in_groups, saved, chosen.of_sets, graph.plan.entries,
        flow.entries, tables, graph.arenas.rows, rows, plan.entries,
    ):  # fmt: skip
        sizes = plan.used
        plan.clear()
        plan.make_room(sizes)
    batches, held = plan.used.batches, programs.prepare(chosen.kinds, table)
    ready = programs.ready(chosen.kinds, programs.scratch(plan, 0, batches))
    terms = [(rule, arena, used.item(arena), flow.columns.rows.item(rule.set)) for rule, arena in chosen.terms]
    parts = flow.columns.parts["batch"][: n_parts if chosen.has_parameters else 0].copy()
    itemsize = table.windows.layouts[at_roots.item(0)][1].itemsize
    placed = np.empty((len(rows), 5), np.int64)
    there = store.gradients.there(len(rows))
    n, zeros, entries = place_rows(rows, there, tables, graph.arenas.rows, itemsize, placed)
    placed = placed[:n]
    begins = dict(zip(placed[:, 0].tolist(), (placed[:, 1] // itemsize).tolist(), strict=True))
    at_rows = PlacedRows(placed[:, 0], begins, placed[:, 1:], zeros, entries)
    # The flow's own columns are those of the next stretch soon.
    requires, sets = (column[: graph.nodes.n] for column in flow.columns[:2])
    planned = BackwardPlan(plan, chosen, ready, batches, at_rows, terms, parts, requires, sets, places)
    return planned, held


class BackwardRun:
    """The backward pass through a stretch of runs, the last batch first; gradients of the graph's values are filled in.

    Args:
        held: what is to be held meanwhile.
        sets: see `FlowColumns`.

    Attributes:
        stretch: of runs.
    """

    def __init__(
        self, stretch: Ran, planned: BackwardPlan, held: list[Any], graph: GraphState, gradients: GradientRows,
        store: Store, sets: np.ndarray,
    ) -> None:  # fmt: skip
        self._held, self.stretch, self._plan, self._graph, self._gradients = held, stretch, planned, graph, gradients
        self._store, self._sets, self._table = store, sets, graph.table
        expect_unwritten(planned.chosen.reads, stretch.time)
        gradients.claim(planned.rows)

    def derived(self, nodes: np.ndarray) -> np.ndarray:
        """Per node the number of its rule, if there is something to compute for it in this pass, else -1."""
        rules, sets = rules_of(self._table).rules, self._sets[nodes]
        of_sets = np.array([at if at >= 0 and rules[at].runs >= 0 else -1 for at in self._plan.chosen.of_sets.tolist()])
        found = np.full(len(nodes), -1)
        inside = (sets >= 0) & (sets < len(of_sets))
        found[inside] = of_sets[sets[inside]]
        return found

    def run(self) -> None:
        """Compute the gradients of values."""
        planned, graph, store, backend = self._plan, self._graph, self._store, self._table.backend
        plan, end = planned.plan, planned.batches
        if not end:
            return
        integers = graph.integers.take(plan.integers[: plan.used.integers])
        tables = plan, backend.lists(plan, integers), memory_of(graph, store, adds=True)
        scratch, _ = store.scratch.take(planned.ready.scratch, _BYTES)
        run_batches(graph, 0, end, tables, self._table.programs, scratch, lambda at: self._check_batch(plan.tables, at))

    def add_to_parameters(self, gatherer: Gatherer = unless_frozen) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        table, stretch = self._table, self.stretch
        for rule, arena, first, n in self._plan.terms:
            assert rule.how is not None
            computed = self._gradients.flat(arena, first, n).reshape(n, rule.how.width)
            TypeRows(rule.how, computed, stretch, self._graph, self._sets, rule.set, rule.kind).add_terms(gatherer)
        if not len(self._plan.parts):
            return
        batches = self._graph.plan.tables.batches[stretch.begin.batches : stretch.end.batches]
        active = np.unique(self._plan.parts)
        for kind, row, n, *_ in batches[active[table.is_source[batches["type"][active]]]].tolist():
            type = table.bound[kind]
            if type.type.op is PARAMETER:
                found = self._gradients.of(type.window)[row : row + n]
                parameter = gatherer(parameter_of(type.type.attributes[0][1]))
                if parameter is not None:
                    add_sum(parameter, found, table.backend)

    def _check_batch(self, plan: Plan, number: int) -> None:
        """Check a batch of derivatives, or of what flows to lists."""
        kind, row, n, first, *_ = plan.batch(number)
        rule = rules_of(self._table).of_kinds.get(kind)
        if rule is None:
            return
        if rule.own >= 0:
            self._check(self._gradients.array(rule.own)[row : row + n], rule)
            return
        assert rule.how is not None
        computed = sum(place is not None and place.column >= 0 for place in rule.how.operands)
        for operand in plan.operands_of(first + len(rule.how.given), computed):
            self._check(self._gradients.array(operand.window)[: operand.n], rule)

    def _check(self, computed: Any, rule: GradientRule) -> None:
        bad = int(self._table.backend.to_host((computed != computed).any(axis=1)).sum())
        if bad:
            where = self._graph.lines(self._nodes_of(rule.kind))
            type = self._table.bound[rule.kind].type
            raise EdBatchError(f"NaN in the gradient of {type} ({bad} of {len(computed)} in its batch){where}")

    def _nodes_of(self, kind: int) -> np.ndarray:
        """The nodes of a type that gradients flow into; which of them a batch has, its tables do not say."""
        nodes = self._graph.plan.nodes[self.stretch.begin.nodes : self.stretch.end.nodes]
        nodes = nodes[self._sets[nodes] >= 0]
        return nodes[self._graph.nodes.types[nodes] == kind]
