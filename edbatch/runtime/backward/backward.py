"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.locking import allow_reentry, signals_deferred
from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.foreign_run import ForeignRun
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.node_type import parameter_of
from edbatch.graph.spec import Spec
from edbatch.runtime.backward.asked import Asked
from edbatch.runtime.backward.expression_gradients import ExpressionGradients
from edbatch.runtime.backward.flow import FlowColumns, begin_flow, flow_table, go_back, with_sets
from edbatch.runtime.backward.parameter_gradients import Gatherer, add_sum, add_terms, unless_frozen
from edbatch.runtime.backward.plan import BackwardPlan, check_batch, plan_backward
from edbatch.runtime.backward.saving import stretches
from edbatch.runtime.backward.seeds import give_seeds
from edbatch.runtime.compile.program_table import ProgramTable
from edbatch.runtime.execute import run_batches
from edbatch.runtime.plan_cache import plans as plan_cache

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation


class Backward:
    """The gradients of expressions with respect to the values of their graph, and to parameters.

    Args:
        roots: ids of the expressions.
        seeds: their own gradients, arrays [k, *shape]: those of the first k, of the next, ...

    Attributes:
        is_there: whether gradients have been computed, and are there still; plans: how, the last runs first.
        gradients: of the values.
        requires, sets: see `FlowColumns`: of what was asked for, and where gradients flowed.
        has_sources: whether gradients of inputs and constants were asked for.
    """

    requires: np.ndarray
    sets: np.ndarray

    def __init__(self, graph: Evaluation, roots: list[int], seeds: list[np.ndarray]) -> None:
        self._graph, self._roots, self._seeds, self.gradients = graph, roots, seeds, graph.gradient_rows
        self._of_expressions = ExpressionGradients(graph)
        self.is_there = self.has_sources = False
        self.plans: list[BackwardPlan] = []
        self.gradients.release()  # what an interrupt has left

    @property
    def has_flowed(self) -> bool:
        """Whether gradients flowed anywhere, which is from a root."""
        return bool(self.plans)

    def run(self) -> None:
        """Compute the gradients of values that lead to parameters, and add them to the parameters'."""
        self._compute(False, ())
        with signals_deferred():
            # All that can fail has been done: parameters get the whole gradient or, after an interrupt, nothing of it.
            self._add_to_parameters(unless_frozen)
            if (run := ForeignRun.current) is not None and run.at_end:
                with allow_reentry():
                    run.end()
        self.is_there = True

    def run_again(self) -> None:
        """Compute the gradients of values, those of inputs and constants too, and leave the parameters' alone."""
        self.release()
        self._compute(True, ())
        self.is_there = True

    def gather(self, asked: Asked) -> None:
        """Compute what is asked for in one pass, and nothing else that does not lie on the way."""
        several = [(spec, np.array(ids, np.int64)) for spec, ids in asked.ids.items()]
        wanted = [node for _, ids in several for node in self._of_expressions.made(ids)[0].tolist()]
        self._compute(False, wanted)
        self._add_to_parameters(asked.gatherer)
        for spec, ids in several:
            asked.found[spec] = self._of_expressions.rows(ids, spec, self.sets)

    def _compute(self, sources: bool, wanted: Sequence[int]) -> None:
        """Compute the gradients of values, by the plan that is cached for this, or by a new one.

        Args:
            sources: compute those of inputs and constants too; wanted: nodes whose gradients are asked for.
        """
        graph, ran, programs = self._graph, self._graph.ran[-1], self._graph.table.programs
        known, self.has_sources = graph.known, sources
        if known is not None:
            key = sources, *ran.saved, None, *self._roots, None, *wanted
            plan = known.backward.get(key)
            if plan is not None and (held := plan.ready.held(programs)) is not None:
                self.requires, self.sets, self.plans = plan.requires, plan.sets, [plan]
                self._run(plan, programs, held, ran.time, True)
                return
        roots = np.array(self._roots, np.int64)
        flow = flow_table(graph.nodes.n, len(graph.table.live_outputs.sets))
        self.requires, self.sets = flow.tables.requires, flow.tables.sets
        flow = self._flow(flow, begin_flow, roots, np.array(wanted, np.int64), sources)
        self.plans = []
        for stretch in reversed(stretches(graph.ran)):
            flow = self._flow(flow, go_back, stretch.extent)
            if not flow.tables.n_parts.item(0):
                continue
            plan, held = plan_backward(stretch, graph, flow, roots)
            if known is not None:
                plan_cache.keep_backward(known, key, plan._replace(plan=plan.plan.copy()))
            self.plans.append(plan)
            self._run(plan, programs, held, stretch.time, is_first=len(self.plans) == 1)

    def _flow(
        self, flow: ArrayTable[FlowColumns], let_flow: Callable[..., int], *given: Any
    ) -> ArrayTable[FlowColumns]:
        """Let gradients flow by a pass of `flow`, once more as long as that meets new sets of live outputs."""
        graph, live = self._graph, self._graph.table.live_outputs
        while True:
            tables = live.tables()
            flow = with_sets(flow, len(live.sets))
            missing = let_flow(*given, graph.plan.entries, graph.nodes.directory, tables, flow.entries)
            if missing < 0:
                return flow
            live.see(missing)

    def _run(self, plan: BackwardPlan, programs: ProgramTable, held: list[Any], time: int, is_first: bool) -> None:
        """Go back through a stretch of runs.

        Args:
            held: what is to be held meanwhile; time: of the runs.
            is_first: there are no gradients so far but those that are given.
        """
        graph, gradients = self._graph, self.gradients
        expect_unwritten(plan.reads, time)
        gradients.claim(plan.rows)
        if is_first:
            give_seeds(self._roots, self._seeds, graph, gradients)
        counts = plan.plan.used
        if counts.batches:
            run_batches(
                graph, plan.plan, 0, counts.batches, slice(0, counts.integers), 0, plan.ready, programs,
                lambda at: check_batch(plan, at, graph, gradients), adds=True,
            )  # fmt: skip

    @np.errstate(all="ignore")  # what overflows is infinite, as everywhere else
    def _add_to_parameters(self, gatherer: Gatherer) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        table, gradients = self._graph.table, self.gradients
        for plan in self.plans:
            for one in plan.left:
                rows = gradients.flat(one.arena, one.first, one.n).reshape(one.n, one.how.width)
                add_terms(one, rows, self._graph, gatherer)
            for kind, row, n in plan.parameters:
                type = table.bound[kind]
                parameter = gatherer(parameter_of(type.type.attributes[0][1]))
                if parameter is not None:
                    add_sum(parameter, gradients.of(type.window)[row : row + n], table.backend)

    def rows(self, ids: np.ndarray, spec: Spec) -> np.ndarray:
        """The gradients [n, *shape] with respect to expressions of one spec."""
        nodes, _ = self._of_expressions.made(ids)
        if not self.is_there or not (self.has_sources or self.requires[nodes[nodes < len(self.sets)]].all()):
            self.run_again()
        return self._of_expressions.rows(ids, spec, self.sets)

    def release(self) -> None:
        """Give the memory of the gradients back: they are computed once more when one is asked for."""
        self.is_there = False
        self.gradients.release()
