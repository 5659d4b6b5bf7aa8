"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from edbatch.base.locking import allow_reentry, signals_deferred
from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.foreign_run import ForeignRun
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.options import current_options
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.asked import Asked
from edbatch.runtime.backward.expression_gradients import ExpressionGradients
from edbatch.runtime.backward.flow import divide, propagate
from edbatch.runtime.backward.plan import BackwardPlan, BackwardRun, SeedPlace, plan_backward
from edbatch.runtime.backward.rules import Rules, rules_of, stopping_views
from edbatch.runtime.backward.saving import Ran, stretches
from edbatch.runtime.plan_cache import plans as plan_cache
from edbatch.runtime.state import GraphState
from edbatch.runtime.store import Store

_ONES = {np.dtype(name): np.ones(1, name) for name in ("float32", "float64")}


def seed_of(place: str, spec: Spec, gradient: Any, *count: int) -> np.ndarray:
    """The gradient [n, *shape] that a caller gave for an expression, or for an array of so many, or 1 for scalars.

    Raises:
        EdBatchError: it has another shape than the expression, or there is none and the expression is no scalar.
    """
    if gradient is None:
        if spec.shape:
            raise EdBatchError(
                f"{place} of an expression of shape {spec.shape}: expected a scalar, or its gradient as an argument"
            )
        return np.ones(count, spec.dtype) if count else _ONES[spec.dtype]
    shape, seed = (*count, *spec.shape), np.array(from_dlpack(gradient, f"{place}: the gradient"), spec.dtype)
    if seed.shape != shape:
        raise EdBatchError(f"{place}: expected a gradient of shape {shape}, got {seed.shape}")
    return seed if count else seed[None]


def roots_of(
    place: str, outputs: Sequence[Any], gradients: Any, check: Callable[[str, Any], None]
) -> tuple[list[int], list[np.ndarray]]:
    """The roots of a backward pass and their gradients, see `Backward`: those of one spec side by side.

    Args:
        place: what error messages begin with.
        outputs, gradients: see `edbatch.backward`.
        check: called with a place and an output, has it be of the graph.
    """
    try:
        given = [None] * len(outputs) if gradients is None else list(gradients)
    except TypeError:
        raise EdBatchError(f"{place}: expected a list of gradients, got {shown(gradients)}") from None
    if len(given) != len(outputs):
        raise EdBatchError(f"{place}: expected {len(outputs)} gradients, one for each output, got {len(given)}")
    groups: dict[Spec, tuple[list[int], list[np.ndarray]]] = {}
    for at, (x, gradient) in enumerate(zip(outputs, given, strict=True)):
        check(f"{place}: output {at}", x)
        if gradient is None and gradients is not None:
            continue
        is_array = isinstance(x, ExpressionArray)
        seed = seed_of(place, x.spec, gradient, *([len(x)] if is_array else []))
        if len(seed):
            roots, seeds = groups.setdefault(x.spec, ([], []))
            roots += x.ids.tolist() if is_array else [x.id]
            seeds.append(seed)
    found = [id for roots, _ in groups.values() for id in roots]
    return found, [np.concatenate(seeds) if len(seeds) > 1 else seeds[0] for _, seeds in groups.values()]


def _as_slice(places: np.ndarray) -> np.ndarray | slice:
    """Places that follow one another as a slice, which takes a quarter of the time."""
    first, n = int(places[0]), len(places)
    return slice(first, first + n) if (places == np.arange(first, first + n)).all() else places


class Backward:
    """The gradients of expressions with respect to the values of their graph, and to parameters.

    Args:
        roots: ids of the expressions.
        seeds: their own gradients, arrays [k, *shape]: those of the first k, of the next, ...

    Attributes:
        requires, sets: see `FlowColumns`: of what was asked for, and where gradients flowed.
        has_sources: whether gradients of inputs and constants were asked for.
        is_there: whether gradients have been computed, and are there still; plans: how.
        has_flowed: whether gradients flowed anywhere, which is from a root.
        gradients: of the values.
    """

    def __init__(
        self, graph: GraphState, store: Store, ran: list[Ran], roots: list[int], seeds: list[np.ndarray]
    ) -> None:
        table = graph.table
        self._graph, self._table, self._store, self._ran = graph, table, store, ran
        self._roots, self._seeds = roots, seeds
        self._wanted: list[int] = []  # nodes whose gradients are asked for, beside parameters
        self._backend, self.is_there = table.backend, False
        self.plans: list[BackwardRun] = []
        self.gradients = store.gradients
        self.gradients.release()  # what an interrupt has left

    @cached_property
    def _of_expressions(self) -> ExpressionGradients:
        return ExpressionGradients(self._graph, self._ran, self.gradients)

    def run(self, sources: bool = False) -> None:
        """Compute the gradients, and add them to the parameters'.

        Args:
            sources: compute those of inputs and constants too, and leave the parameters' alone.
        """
        if sources:
            self.release()  # what the first plan back has left
        self.has_sources = sources
        plans = self.plans = self._run_stretches()
        self.has_flowed = bool(plans)
        if not sources:
            # All that can fail has been done: parameters get the whole gradient or, after an interrupt, nothing of it.
            with np.errstate(all="ignore"), signals_deferred():  # what overflows is infinite, as everywhere else
                for plan in plans:
                    plan.add_to_parameters()
                if (run := ForeignRun.current) is not None and run.at_end:
                    with allow_reentry():
                        run.end()
        self.is_there = True

    def gather(self, asked: Asked) -> None:
        """Compute what is asked for in one pass, and nothing else that does not lie on the plan."""
        self.has_sources = False
        several = [(spec, np.array(ids, np.int64)) for spec, ids in asked.ids.items()]
        self._wanted = [node for _, ids in several for node in self._of_expressions.nodes(ids)[0].tolist()]
        plans = self._run_stretches()
        with np.errstate(all="ignore"):
            for plan in plans:
                plan.add_to_parameters(asked.gatherer)
        for spec, ids in several:
            asked.found[spec] = self._of_expressions.rows(ids, spec, self.sets)

    def _run_stretches(self) -> list[BackwardRun]:
        """Compute the gradients of values, by the plan that is cached for this, or by a new one."""
        known, table = self._graph.known, self._table
        plans: list[BackwardRun] = []
        if known is not None:
            ran = self._ran[0]
            key = self.has_sources, current_options().plain, *ran.saved, None, *self._roots, None, *self._wanted
            found = known.backward.get(key)
            if found is not None and (held := found.ready.held(table.programs)) is not None:
                self.requires, self.sets = found.requires, found.sets
                return [self._run_stretch(ran, found, held, True)]
        roots, rules = np.array(self._roots, np.int64), rules_of(table)
        self._flow(roots, rules)
        graph, store, n_sets = self._graph, self._store, len(table.live_outputs.sets)
        flow, nodes, tables = store.flow, graph.nodes.directory, rules.flow_tables
        for stretch in reversed(stretches(self._ran)):
            divided = divide(*stretch.extent, n_sets, graph.plan.entries, nodes, tables, flow.entries)
            if divided[0]:
                places = [] if plans else self._places(roots)
                plan, held = plan_backward(stretch, graph, store, divided, roots, places, rules)
                if known is not None:
                    plan_cache.keep_backward(known, key, plan.copy())
                plans.append(self._run_stretch(stretch, plan, held, not plans))
        return plans

    def _run_stretch(self, stretch: Ran, plan: BackwardPlan, held: list[Any], is_last: bool) -> BackwardRun:
        """Go back through a stretch of runs; `is_last`: there are no gradients so far but those that are given."""
        run = BackwardRun(stretch, plan, held, self._graph, self.gradients, self._store, self.sets)
        if is_last:
            self._give_seeds(plan.places)
        run.run()
        return run

    def _give_seeds(self, places: Sequence[SeedPlace]) -> None:
        """Put the given gradients where the backward pass begins; several may be of one node."""
        backend = self._backend
        if not places:
            seed, (root,), nodes = self._seeds[0][0], self._roots, self._graph.nodes
            arena = self._table.arenas.item(nodes.types.item(root)) + GRADIENT
            # One number goes along with a kernel that fills in; several would be copied to a GPU.
            given = backend.from_host(seed, "C").reshape(-1) if seed.ndim else seed
            self.gradients.flat(arena, nodes.row.item(root), 1)[...] = given
        for number, chosen, window, rows in places:
            given, array = backend.from_host(self._seeds[number][chosen], "C"), self.gradients.of(window)
            if isinstance(rows, np.ndarray):
                found, total = backend.sum_equal(rows, given.reshape(len(given), given[0].size))
                rows, given = backend.from_host(found), total.reshape(len(found), *array.shape[1:])
            array[rows] += given

    def _places(self, roots: np.ndarray) -> list[SeedPlace]:
        """Where the gradients that are given go; none if it is one, of a whole node."""
        found, stops, end = list[SeedPlace](), stopping_views()[roots >> NODE_BITS], 0
        for number, seeds in enumerate(self._seeds if len(roots) > 1 or roots[0] > NODE_MASK else ()):
            begin, end = end, end + len(seeds)
            for chosen, window, rows in self._table.by_window(roots[begin:end], self._graph.nodes):
                if not stops[begin + chosen[0]]:
                    found.append(SeedPlace(number, _as_slice(chosen), window, _as_slice(rows)))
        return found

    def _flow(self, roots: np.ndarray, rules: Rules) -> None:
        """Find out where gradients flow."""
        table, nodes, flow, plan = self._table, self._graph.nodes, self._store.flow, self._graph.plan
        found, wanted, n, at = table.live_outputs, np.array(self._wanted, np.int64), nodes.n, -1
        found.see(table.bound)
        flow.reserve(n, len(found.sets))
        columns = flow.columns
        self.requires, self.sets = columns.requires[:n], columns.sets[:n]
        while True:
            given = plan.entries, nodes.directory, rules.flow_tables, flow.entries
            at = propagate(roots, wanted, at, self.has_sources, *given)
            if at == -1:
                break
            if at >= 0:
                found.follow(int(plan.nodes[at]), nodes, self.requires, self.sets)
            else:
                found.begin(self._roots[-2 - at], nodes, self.sets)
                at = -1
        flow.reserve(n, len(found.sets))

    def gradient(self, id: int, spec: Spec) -> Any:
        """The gradient with respect to an expression, as an array of its own."""
        found = self._of_expressions.made_at(id)
        if found.node < len(self.sets):
            if not self.is_there or (not self.has_sources and not self.requires[found.node]):
                self.run(sources=True)
            if self.sets[found.node] >= 0:
                return self._backend.to_host(self._of_expressions.gradient(found, self.sets)[0]).copy()[()]
        return np.zeros(spec.shape, spec.dtype)[()]

    def rows(self, ids: np.ndarray, spec: Spec) -> np.ndarray:
        """The same [n, *shape] of expressions of one spec."""
        nodes, _ = self._of_expressions.nodes(ids)
        if not self.is_there or not (self.has_sources or self.requires[nodes[nodes < len(self.sets)]].all()):
            self.run(sources=True)
        return self._of_expressions.rows(ids, spec, self.sets)

    def release(self) -> None:
        """Give the memory of the gradients back: they are computed once more when one is asked for."""
        self.is_there = False
        self.gradients.release()
