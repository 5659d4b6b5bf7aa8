"""The evaluation of a graph: its nodes taken over, split, scheduled, planned, run; what is recorded later, later."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from edbatch.base.stopwatch import Clock, Moment, booked
from edbatch.devices import Device
from edbatch.errors import EdBatchError
from edbatch.graph.columns import DAMAGED
from edbatch.graph.expression import Expression
from edbatch.graph.model.writes import now
from edbatch.graph.options import Options, current_options
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.kernels.backend import Backend
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.format import Plan
from edbatch.memory.plan.planner import make_plan
from edbatch.policy.bounds import lower_bound
from edbatch.policy.policy import Policy
from edbatch.policy.registry import schedule_of
from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.advice import Use, advice
from edbatch.runtime.backward.backward import Backward
from edbatch.runtime.backward.saving import Ran, SavingTable
from edbatch.runtime.execute import Executor
from edbatch.runtime.learned import default_policy
from edbatch.runtime.lines import Lines
from edbatch.runtime.lower import UNKNOWN, contract, decode, with_sources
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.report import Report
from edbatch.runtime.split import split_nodes
from edbatch.runtime.state import GraphState
from edbatch.runtime.type_table import shared_table


class Evaluation:
    """What has become of the nodes that a graph recorded.

    Args:
        device: where it runs.
        options: of the graph.
        check_nan: raise after the first batch with a NaN.

    Attributes:
        policy: that was used last.
        table: the types, windows and programs.
        arenas: the values.
        nodes: those that were taken over; the first `done` have run.
        ran: the plans that have run.
        scheduled: what a policy saw of them.
        lines: by node where it was recorded, under `options(trace_lines=True)`.
    """

    def __init__(self, device: Device, options: Options, check_nan: bool) -> None:
        self.policy: Policy | None = None
        self.table = shared_table(device)
        self.arenas = Arenas(self.table.windows, self.table.pool)
        self.nodes = Nodes()
        self.done = 0
        self.ran: list[Ran] = []
        self.scheduled: list[TypedGraph] = []
        self._options = options
        self._report = Report(device=device.name)
        self.lines: dict[int, str] = {}
        where = Lines(self.lines if options.trace_lines else None, self.nodes)
        self._state = GraphState(self.table, self.nodes, self.arenas, check_nan, where)
        self._profile: dict[int, float] | None = {} if options.profile else None
        self._uncounted: list[Plan] = []  # that have run and are not yet in the report
        self._executor = Executor(self._state, self._profile)
        self._backward: Any = None

    def release(self) -> None:
        """Give all buffers back; the values are gone."""
        if self._backward is not None:
            self._backward.release()
        for ran in self.ran:
            for saved in ran.saved.values():
                saved.release()
        self._executor.release()
        self.arenas.release()

    def take_over(self, types: np.ndarray, args: np.ndarray) -> None:
        """Append recorded nodes, with operands found and views seen.

        Args:
            types, args: see `Columns.take`.
        """
        if not len(types):
            return
        nodes, table = self.nodes, self.table
        first, base = nodes.n, nodes.n_args
        nodes.reserve(len(types), len(args))
        nodes.args[base : nodes.n_args] = args
        columns = nodes.columns(first)
        read = UNKNOWN
        while read == UNKNOWN:
            known = table.local, table.n_args, table.n_payload, table.view_windows
            read = decode(types, first, base, known, columns)
            if read == UNKNOWN:
                table.number(types)
                table.see(args)
        if read != nodes.n_args:
            raise EdBatchError(DAMAGED)

    def split(self) -> Nodes:
        """What has run, and what is pending as it would run now."""
        if not self._options.split:
            return self.nodes
        nodes = self.nodes.copy()  # the graph may grow, and then be split otherwise
        split_nodes(nodes, self.done, self.table)
        return nodes

    def typed_graph(self, nodes: Nodes, first: int) -> tuple[np.ndarray, TypedGraph]:
        """What has to be scheduled of the nodes from `first` on: node ids (from `first`), and the graph of them."""
        table = self.table
        present, kinds, chosen, indptr, operands = contract(first, nodes.columns(first), table.is_source)
        return chosen, TypedGraph(kinds, indptr, operands, table.names(present))

    def run(self, policy: Policy | None, inputs: list[Any], saving: bool, opened: Moment, recorded: Moment) -> None:
        """Run the nodes that were taken over last.

        Args:
            policy: decides which type runs next; None: one that is learned.
            inputs: arrays of the input nodes, found by payload.
            saving: keep what a backward run will read.
            opened, recorded: when recording began and ended.
        """
        first, report, nodes, table = self.done, self._report, self.nodes, self.table
        clock = Clock(report.seconds, opened)
        clock.stop("construction", recorded)
        if self._options.split:
            split_nodes(nodes, first, table)
        chosen, graph = self.typed_graph(nodes, first)
        clock.stop("lowering")
        order, offsets = chosen[:0], np.zeros(1, np.int64)
        if len(graph):
            if policy is None:  # what is new may have types that the last policy does not know
                policy = default_policy(graph)
                clock.stop("learning")
            self.policy = policy
            before = getattr(policy, "fallbacks", 0)
            schedule = schedule_of(policy, graph)
            order, offsets = chosen[schedule.order], schedule.offsets
            report.fallbacks += getattr(policy, "fallbacks", 0) - before
            report.batches += len(schedule)
            self.scheduled.append(graph)
            clock.stop("scheduling")
        order, offsets, n_sources = with_sources(order, offsets, nodes.types[first : nodes.n], table.is_source)
        order += first
        kinds = table.n_payload, table.singles, table.lists, table.window, table.view_windows
        plan = make_plan(order, offsets, nodes.columns(), kinds, nodes.row, first, self.arenas.rows())
        clock.stop("planning")
        self.ran.append(self._execute(plan, n_sources, inputs, order, saving))
        clock.stop("execution")
        self.done = nodes.n
        report.nodes += len(graph)
        report.edges += len(graph.operands)
        self._uncounted.append(plan)

    def _execute(self, plan: Plan, n_sources: int, inputs: list[Any], order: np.ndarray, saving: bool) -> Ran:
        time, types = now(), SavingTable(self.table, plan) if saving else self.table
        with self._computing():
            indices = self._executor.run(plan, n_sources, inputs, order, types)
        saved = {}
        if isinstance(types, SavingTable):
            saved = types.saved
            self._executor.release()  # the way back needs room of its own
        return Ran(plan, indices, n_sources, order, saved, time)

    def values(self, ids: np.ndarray) -> list[Any]:
        """The values of expressions with these ids, that have run."""
        self.table.see(ids)
        table, nodes, codes = self.table, ids & NODE_MASK, ids >> NODE_BITS
        windows = np.where(codes > 0, table.view_windows[codes], table.window[self.nodes.types[nodes]])
        values: list[Any] = [None] * len(ids)
        for window in np.unique(windows).tolist():
            chosen = np.flatnonzero(windows == window)
            # One copy of all rows from a window; every value is a row of it.
            found = rows_to_host(self.arenas.array(window), self.nodes.row[nodes[chosen]], table.backend)
            for at, value in zip(chosen.tolist(), found, strict=True):
                values[at] = value
        return values

    def backward(self, expression: Expression, seed: np.ndarray) -> None:
        """Compute the gradients of an expression that has run, given its own."""
        before, self._backward = self._backward, None
        if before is not None:
            before.release()
        backward = Backward(self._state, self.ran, expression.id, seed)
        clock, token = Clock(self._report.seconds), booked.set(self._report.seconds)
        try:
            with self._computing():
                backward.run()
        finally:
            booked.reset(token)
        clock.stop("backward")
        self._backward = backward  # once it is whole: gradients are read of it

    def went_back_in_vain(self) -> bool:
        """Whether the last way back led to no parameter, though some have run."""
        return not (self._backward.sets >= 0).any() and bool(
            self.table.holds_parameters[self.nodes.types[: self.done]].any()
        )

    def gradient(self, expression: Expression) -> Any:
        """The gradient with respect to an expression; see `Expression.gradient`."""
        if self._backward is None:
            raise EdBatchError("gradient: expected a call of backward() on an expression of this graph before")
        # Taken out while it works: it may go back once more, and what an interrupt left of that must not be read.
        backward, self._backward = self._backward, None
        clock = Clock(self._report.seconds)
        with self._computing():
            found = backward.gradient(expression.id, expression.spec)
        clock.stop("backward")
        self._backward = backward
        return found

    def report(self) -> Report:
        """What has run so far."""
        report = self._report
        while self._uncounted:
            report.count_operands(self._uncounted.pop(), self.table.windows)
        report.lower_bound = sum(lower_bound(graph) for graph in self.scheduled)
        report.types = len({name for graph in self.scheduled for name in graph.names})
        report.memory_bytes = self.arenas.bytes
        report.uses = self._uses()
        advised = self.policy is not None and getattr(self.policy, "name", "") != "none"
        report.advice = advice(report.uses, self.scheduled, self._whole) if advised else []
        return report

    def _whole(self) -> TypedGraph:
        """All that has run, as one graph."""
        nodes = self.nodes.copy()
        nodes.n = self.done
        return self.typed_graph(nodes, 0)[1]

    def _uses(self) -> dict[str, Use]:
        """What has run of each type, by its name."""
        batches = np.concatenate([ran.plan.batches[ran.n_sources :] for ran in self.ran]) if self.ran else None
        found: dict[str, Use] = {}
        for kind in [] if batches is None else dict.fromkeys(batches["type"].tolist()):
            assert batches is not None
            of_kind = batches[batches["type"] == kind]
            name = self.table.bound[kind].type.name
            before = found.get(name, Use(0, 0, 0.0))  # parameters of two collections may have one name
            seconds = None if self._profile is None else (before.seconds or 0) + self._profile.get(kind, 0.0)
            found[name] = Use(before.batches + len(of_kind), before.nodes + int(of_kind["n"].sum()), seconds)
        return found

    def _computing(self) -> AbstractContextManager[Any]:
        """In its block, what is computed is computed on the device, under the options in force."""
        options = current_options()
        return self.table.backend.computing(options.record, options.precision)


def rows_to_host(array: Any, rows: np.ndarray, backend: Backend) -> np.ndarray:
    """Some rows [k, *shape] of a device's array, copied to the host; those that lie side by side in one piece."""
    first, n = int(rows[0]), len(rows)
    with backend.active():
        if (rows == np.arange(first, first + n)).all():
            return np.array(backend.to_host(array[first : first + n]))
        return backend.to_host(array[backend.from_host(rows)])
