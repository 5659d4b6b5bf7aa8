"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.exclusive import Whole
from edbatch.errors import EdBatchError
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.model.writes import now
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS
from edbatch.runtime.backward.expression_gradients import ExpressionGradients
from edbatch.runtime.backward.gradient_arenas import GradientArenas
from edbatch.runtime.backward.plan import BackwardPlan
from edbatch.runtime.backward.reach import asked_for, flow, per_batch
from edbatch.runtime.backward.records import Flow
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.state import GraphState


def seed_of(spec: Spec, gradient: Any) -> np.ndarray:
    """The gradient that a caller gave for an expression, or 1 for a scalar.

    Raises:
        EdBatchError: it has another shape than the expression, or there is none and the expression is no scalar.
    """
    if gradient is None:
        if spec.shape:
            raise EdBatchError(
                f"backward of an expression of shape {spec.shape}: expected a scalar, or its gradient as an argument"
            )
        return np.ones((), spec.dtype)
    seed = np.array(from_dlpack(gradient, "backward: the gradient"), spec.dtype)
    if seed.shape != spec.shape:
        raise EdBatchError(f"backward: expected a gradient of shape {spec.shape}, got {seed.shape}")
    return seed


class Backward:
    """The gradients of one expression with respect to the values of its graph, and to parameters.

    Args:
        graph: whose expression it is.
        ran: its plans.
        root, seed: id of the expression that gradients are of, and its own.

    Attributes:
        requires: per node, whether its gradient was asked for.
        sets: per node, the number of the set of its outputs that gradients flowed into; -1: none did.
        has_sources: whether gradients of inputs and constants were asked for.
        gradients: of the values.
    """

    def __init__(self, graph: GraphState, ran: list[Ran], root: int, seed: np.ndarray) -> None:
        self._graph = graph
        self._table = graph.table
        self._ran = ran
        self._root, self._seed = root, seed
        self._backend = graph.table.backend
        self.gradients = GradientArenas(graph.table.windows, graph.arenas, graph.table.pool)
        self._of_expressions = ExpressionGradients(graph, ran, self.gradients)

    def run(self, sources: bool = False) -> None:
        """Compute the gradients, and add them to the parameters'.

        Args:
            sources: compute those of inputs and constants too, and leave the parameters' alone.
        """
        self.release()
        self.has_sources = sources
        now()  # what others have written since is noted
        table, nodes = self._table, self._graph.nodes
        root, code = self._root & NODE_MASK, self._root >> NODE_BITS
        view_stops = _view_stops()
        wanted = np.ones_like(table.is_source) if sources else table.holds_parameters & ~table.ends_gradients
        order = np.concatenate([ran.nodes for ran in self._ran])
        columns = nodes.columns()
        self.requires = asked_for(order, columns, wanted, table.ends_gradients, view_stops)
        self.sets = np.full(nodes.n, -1, np.int64)
        if view_stops[code] or not self.requires[root]:
            return
        found = table.output_sets
        self.sets[root] = found.of_root(table.bound, int(nodes.types[root]), code)
        at = len(order) - 1
        while at >= 0:
            at = flow(order, at, columns, self.requires, view_stops, tuple(found.tables), self.sets)
            if at >= 0:
                found.follow(int(order[at]), nodes, self.requires, self.sets)
        seeded = self._of_expressions.row(self.gradients.array, self._root)
        seeded[0] = self._backend.from_host(self._seed, "C")
        stopped = self._stopped(view_stops)
        plans = []
        for ran in reversed(self._ran):
            parts, present, rows, operands = per_batch(
                ran.plan.batches, ran.nodes, columns, self.sets, view_stops, table.singles, table.lists,
                len(found.sets),
            )  # fmt: skip
            if len(parts):
                flowing = Flow(self.sets, parts, present, rows, operands, stopped)
                plans.append(BackwardPlan(ran, self._graph, self.gradients, flowing))
                plans[-1].run()
        if not sources:
            # All that can fail has been done: parameters get the whole gradient or, after an interrupt, nothing of it.
            with Whole():
                for plan in plans:
                    plan.add_to_parameters()
        for plan in plans:
            plan.release()

    def gradient(self, id: int, spec: Spec) -> Any:
        """The gradient with respect to an expression, as an array of its own."""
        node = id & NODE_MASK
        if node < len(self.sets):
            found = self._of_expressions.made_at(id)
            if not self.has_sources and not self.requires[found.node]:
                self.run(sources=True)
            if self.sets[found.node] >= 0:
                return self._backend.to_host(self._of_expressions.gradient(found, self.sets)[0]).copy()[()]
        return np.zeros(spec.shape, spec.dtype)[()]

    def _stopped(self, view_stops: np.ndarray) -> np.ndarray:
        """Per window, whether no gradient flows to what is read through it: each view has one of its own."""
        of_views = self._table.view_windows[: len(view_stops)]
        found = np.zeros(len(self._table.windows.windows), np.bool_)
        found[of_views[view_stops[: len(of_views)] & (of_views >= 0)]] = True
        return found

    def release(self) -> None:
        """Give the memory of the gradients back."""
        self.gradients.release()


def _view_stops() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view
