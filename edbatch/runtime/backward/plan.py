"""The backward pass through some runs as a plan of its own, which the same compiled loops run.

A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition to an operand,
the first, of rows, the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_MASK
from edbatch.memory.plan.arenas import GradientRows, PlacedRows
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.flow import FlowColumns
from edbatch.runtime.backward.loops import plan_back, room_back
from edbatch.runtime.backward.parameter_gradients import TypeRows, type_rows
from edbatch.runtime.backward.rules import GradientRule
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.graph_errors import check_rows

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

LINE = 16  # entries: what lies in an arena begins with a line of the cache
_NONE = np.zeros(0, np.int64)


class BackwardPlan(NamedTuple):
    """The backward plan of a stretch of runs: the same whenever the same has run, and gradients flow as they did.

    Attributes:
        stretch: of runs; rules: by which gradients flow; reads: the parameters whose values these need.
        plan: the batches.
        ready: the programs.
        rows: where gradients, and what is computed, lie.
        left: what derivatives leave for parameters.
        parameters: batches of nodes that are parameters: the number of the type, the first row, and how many.
        requires, sets: see `FlowColumns`.
    """

    stretch: Ran
    rules: list[GradientRule]
    reads: frozenset[ParameterSpec]
    plan: GrowingPlan
    ready: Ready
    rows: PlacedRows
    left: list[TypeRows]
    parameters: list[tuple[int, int, int]]
    requires: np.ndarray
    sets: np.ndarray

    @property
    def bytes(self) -> int:
        """Of all arrays, about."""
        of_parameters = sum(places.nbytes for one in self.left for places in one.integers.values())
        return 1000 + self.requires.nbytes + self.sets.nbytes + self.plan.bytes + of_parameters

    def derived(self, nodes: np.ndarray) -> np.ndarray:
        """Per node the number of its set of live outputs, if there is something to compute for it, else -1."""
        sets = self.sets[nodes]
        return np.where(np.isin(sets, [rule.set for rule in self.rules if rule.runs >= 0]), sets, -1)


def plan_backward(
    stretch: Ran, graph: Evaluation, flowing: ArrayTable[FlowColumns], roots: np.ndarray
) -> tuple[BackwardPlan, list[Any]]:  # fmt: skip
    """Plan a backward pass through the parts of batches that gradients flow into, in the graph's plan for that.

    Args:
        flowing: how gradients flow through it.
        roots: ids of the expressions whose gradients are given.

    Returns:
        The plan, and what is to be held while it runs.
    """
    flow, plan, table, nodes = flowing.tables, graph.back, graph.table, graph.nodes
    rules = table.rules.choose(flow, stretch.saved)
    graph.arenas.see_layouts()
    used = graph.arenas.used
    rows = np.zeros(len(used), np.int64)
    at_roots = table.facts.tables.arenas[nodes.types[roots & NODE_MASK]]
    rows[at_roots + GRADIENT] = used[at_roots]
    saved = _NONE
    if stretch.saved:
        saved = np.zeros(table.count, np.int64)
        for kind, one in stretch.saved.items():
            saved[kind] = one.first
    rule_of = np.full(len(table.live_outputs.sets), -1, np.int64)
    rule_of[[rule.set for rule in rules]] = [rule.number for rule in rules]
    plan.clear()
    dtype = table.windows.layouts[at_roots.item(0)][1]
    adding = table.rules.adding(dtype)
    passed = graph.plan.entries, flowing.entries, table.rules.tables()
    plan.make_room(room_back(stretch.extent, rule_of, *passed))
    plan_back(
        stretch.extent, adding, table.backend.adds_in_groups, saved, rule_of, *passed, graph.arenas.rows, rows,
        plan.entries,
    )  # fmt: skip
    windows = table.windows
    kinds = [adding] + [rule.runs for rule in rules if rule.runs >= 0]
    ready, held = table.programs.prepare(kinds, plan, 0, plan.used.batches)
    left = [
        type_rows(rule, windows.windows[rule.own].arena, used, flow, stretch, graph)
        for rule in rules
        if rule.own >= 0 and rule.how is not None and rule.how.terms
    ]
    parameters = [rule.set for rule in rules if table.bound[rule.kind].type.op is PARAMETER]
    parts = flow.parts[: flow.n_parts.item(0)] if parameters else flow.parts[:0]
    active = np.unique(parts["batch"][np.isin(parts["set"], parameters)])
    batches = [batch[:3] for batch in graph.plan.batches[stretch.begin.batches :][active].tolist()]
    placed = place_rows(rows, graph.gradient_rows.there(len(rows)), graph.arenas.words[:, 1], dtype.itemsize)
    reads = frozenset[ParameterSpec]().union(*(rule.how.reads for rule in rules if rule.how is not None))
    return BackwardPlan(stretch, rules, reads, plan, ready, placed, left, batches, flow.requires, flow.sets), held


def place_rows(rows: np.ndarray, there: np.ndarray, strides: np.ndarray, itemsize: int) -> PlacedRows:
    """Place the rows of arenas side by side, those of gradients first.

    Args:
        rows: per arena, how many; there: whether it is to stay where it is; none: that is no arena.
        strides: in bytes; itemsize: of an entry.
    """
    if len(there):
        rows = np.where(there, 0, rows)
    present = rows.nonzero()[0].tolist()
    chosen = [at for at in present if at % 2 == GRADIENT]
    zeros = len(chosen)
    chosen += [at for at in present if at % 2 != GRADIENT]
    counts, bytes_of = rows[chosen], strides[chosen]
    sizes = -(counts * (bytes_of // itemsize) // -LINE) * LINE
    ends = np.append(0, sizes.cumsum())
    words = np.stack([ends[:-1] * itemsize, bytes_of, counts, counts], 1)
    begins = dict(zip(chosen, ends.tolist(), strict=False))
    return PlacedRows(np.array(chosen, np.int64), begins, words, ends.item(zeros), ends.item(-1))


def check_batch(planned: BackwardPlan, number: int, graph: Evaluation, gradients: GradientRows) -> None:
    """Check a batch of derivatives, or of what flows to lists: an error that names the type if there is a NaN."""
    plan = planned.plan.tables
    kind, row, n, first, *_ = plan.batch(number)
    rule = graph.table.rules.of_kinds.get(kind)
    if rule is None:
        return
    if rule.own >= 0:
        found = [gradients.array(rule.own)[row : row + n]]
    else:
        assert rule.how is not None
        computed = sum(place is not None and place.column >= 0 for place in rule.how.operands)
        operands = plan.operands_of(first + len(rule.how.given), computed)
        found = [gradients.array(operand.window)[: operand.n] for operand in operands]
    # Nodes of the type that gradients flow into: which of them a batch has, its tables do not say.
    nodes = graph.plan.nodes[planned.stretch.begin.nodes : planned.stretch.end.nodes]
    nodes = nodes[(planned.sets[nodes] >= 0) & (graph.nodes.types[nodes] == rule.kind)]
    for rows in found:
        check_rows(rows, nodes, rule.kind, graph, backward=True)
