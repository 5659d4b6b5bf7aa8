"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from edbatch.base.exclusive import Whole
from edbatch.errors import EdBatchError
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.options import current_options
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.runtime.backward.expression_gradients import ExpressionGradients
from edbatch.runtime.backward.placing import GradientArenas
from edbatch.runtime.backward.plan import BackwardPlan, Way, planned
from edbatch.runtime.backward.reach import divide, flow_from
from edbatch.runtime.backward.route import Route
from edbatch.runtime.backward.routes import Routes, routes_of, stopping_views
from edbatch.runtime.backward.saving import Ran, stretches
from edbatch.runtime.plan_cache import plans as plan_cache
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store


def seed_of(spec: Spec, gradient: Any) -> Any:
    """The gradient that a caller gave for an expression, or 1 for a scalar.

    Raises:
        EdBatchError: it has another shape than the expression, or there is none and the expression is no scalar.
    """
    if gradient is None:
        if spec.shape:
            raise EdBatchError(
                f"backward of an expression of shape {spec.shape}: expected a scalar, or its gradient as an argument"
            )
        return spec.dtype.type(1)
    seed = np.array(from_dlpack(gradient, "backward: the gradient"), spec.dtype)
    if seed.shape != spec.shape:
        raise EdBatchError(f"backward: expected a gradient of shape {spec.shape}, got {seed.shape}")
    return seed


class Backward:
    """The gradients of one expression with respect to the values of its graph, and to parameters.

    Args:
        root, seed: id of the expression, and its own gradient.

    Attributes:
        requires, sets: see `FlowColumns`: of what was asked for, and where gradients flowed.
        has_sources: whether gradients of inputs and constants were asked for.
        gradients: of the values.
    """

    def __init__(self, graph: GraphState, store: Store, ran: list[Ran], root: int, seed: Any) -> None:
        table = graph.table
        self._graph, self._table, self._store, self._ran = graph, table, store, ran
        self._root, self._seed = root, seed
        self._backend = table.backend
        self.gradients = GradientArenas(table.windows, graph.arenas, table.pool, store.gradients)

    @cached_property
    def _of_expressions(self) -> ExpressionGradients:
        return ExpressionGradients(self._graph, self._ran, self.gradients)

    def run(self, sources: bool = False) -> None:
        """Compute the gradients, and add them to the parameters'.

        Args:
            sources: compute those of inputs and constants too, and leave the parameters' alone.
        """
        if sources:
            self.release()  # what the first way back has left
        self.has_sources = sources
        plans = self._gone_back(routes_of(self._table))
        if not sources:
            # All that can fail has been done: parameters get the whole gradient or, after an interrupt, nothing of it.
            with np.errstate(all="ignore"), Whole():  # what overflows is infinite, as everywhere else
                for plan in plans:
                    plan.add_to_parameters()

    def _gone_back(self, routes: Routes) -> list[BackwardPlan]:
        """Compute the gradients of values, by the way that was gone when all was as it is, or by a new one."""
        known = self._graph.known
        plans: list[BackwardPlan] = []
        if known is not None:
            ran = self._ran[0]
            key = self._root, self.has_sources, current_options().plain, *ran.saved
            found = known.ways.get(key)
            if found is not None and (again := routes.again(found)) is not None:
                self.requires, self.sets = found.requires, found.sets
                return [self._gone(ran, found, *again, True)]
        if not self._flow(routes):
            return []
        graph, store, n_sets = self._graph, self._store, len(self._table.output_sets.sets)
        flow, nodes, ways = store.flow, graph.nodes.directory, routes.ways
        for stretch in reversed(stretches(self._ran)):
            divided = divide(*stretch.extent, n_sets, graph.plan.entries, nodes, ways, flow.entries)
            if divided[0]:
                route, held = routes.find(flow.columns.present[: divided[1]], stretch.saved)
                way = planned(stretch, graph, self.gradients, store, divided, self._root & NODE_MASK, route)
                if known is not None:
                    plan_cache.keep_way(known, key, way.copy())
                plans.append(self._gone(stretch, way, route, held, not plans))
        return plans

    def _gone(self, stretch: Ran, way: Way, route: Route, held: list[Any], is_last: bool) -> BackwardPlan:
        """Go back through a stretch of runs; `is_last`: the gradient that is given is of one of their nodes."""
        plan = BackwardPlan(stretch, way, route, held, self._graph, self.gradients, self._store, self.sets)
        if is_last:
            self._give_seed(plan)
        plan.run()
        return plan

    def _give_seed(self, plan: BackwardPlan) -> None:
        """Put the gradient that is given where a way back begins."""
        # One number goes along with a kernel that fills in; several would be copied to a GPU.
        seed = self._seed[()] if self._seed.ndim == 0 else self._backend.from_host(self._seed, "C")
        if self._root <= NODE_MASK:
            plan.gradient_of(self._root)[...] = seed.reshape(-1) if self._seed.ndim else seed
        else:
            self._of_expressions.row(self.gradients.array, self._root)[0] = seed

    def _flow(self, routes: Routes) -> bool:
        """Find out where gradients flow; returns whether they do."""
        table, nodes, flow, plan = self._table, self._graph.nodes, self._store.flow, self._graph.plan
        root, code = self._root & NODE_MASK, self._root >> NODE_BITS
        found, n = table.output_sets, nodes.n
        number = found.of_root(table.bound, nodes.types.item(root), code)
        flow.reserve(n, len(found.sets))
        columns = flow.columns
        self.requires, self.sets = columns.requires[:n], columns.sets[:n]
        number = -1 if stopping_views()[code] else number
        at = -1
        while True:
            at = flow_from(root, number, at, self.has_sources, plan.entries, nodes.directory, routes.ways, flow.entries)
            if at < 0:
                break
            found.follow(int(plan.nodes[at]), nodes, self.requires, self.sets)
        flow.reserve(n, len(found.sets))
        return self.has_flowed

    @property
    def has_flowed(self) -> bool:
        """Whether gradients flowed anywhere, which is from the root."""
        return bool(self.sets[self._root & NODE_MASK] >= 0)

    def gradient(self, id: int, spec: Spec) -> Any:
        """The gradient with respect to an expression, as an array of its own."""
        found = self._of_expressions.made_at(id)
        if found.node < len(self.sets):
            if not self.has_sources and not self.requires[found.node]:
                self.run(sources=True)
            if self.sets[found.node] >= 0:
                return self._backend.to_host(self._of_expressions.gradient(found, self.sets)[0]).copy()[()]
        return np.zeros(spec.shape, spec.dtype)[()]

    def release(self) -> None:
        """Give the memory of the gradients back."""
        self.gradients.release()
