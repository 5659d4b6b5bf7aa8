"""The evaluation of a graph: its nodes taken over, split, scheduled, planned, run; what is recorded later, later."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from heapq import heappop, heappush
from typing import Any
from weakref import ref

import numpy as np

from edbatch.base.records import words_of
from edbatch.base.stopwatch import Clock
from edbatch.compiling.array_table import ArrayTable
from edbatch.errors import EdBatchError
from edbatch.graph.columns import DAMAGED
from edbatch.graph.foreign_run import ForeignRun
from edbatch.graph.model.writes import Source, now, running
from edbatch.graph.options import Options, current_options
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import SAVING
from edbatch.memory.plan.arenas import Arenas, GradientRows
from edbatch.memory.plan.growing import GrowingPlan, Used
from edbatch.memory.plan.pool import KeptBuffer
from edbatch.policy.heuristics import DEFAULT
from edbatch.policy.policy import Policy, get_policy, is_known, schedule_of
from edbatch.policy.rounds import schedule_of_round
from edbatch.policy.typed_graph import Successors, TypedGraph
from edbatch.runtime.backward.asked import Asked
from edbatch.runtime.backward.backward import Backward
from edbatch.runtime.backward.saving import Ran, Saved, claim_saved
from edbatch.runtime.execute import Timed, run_plan
from edbatch.runtime.lower import FEW, UNKNOWN, contract, decode, plan_batches, plan_few
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.plan_cache import CachedPlan, plans
from edbatch.runtime.split import split_nodes
from edbatch.runtime.type_table import TypeTable

MOST_BYTES = 1 << 26  # of an evaluation that is kept
MOST_FREE = 4  # that are kept for graphs of one table
_numbers = itertools.count()
AT_ONCE = 8  # values from which on those seen through one window are copied at once: to group them takes 25 us
NOTHING = Used(0, 0, 0, 0, 0, 0)


def evaluation_of(table: TypeTable) -> Evaluation:
    """One to begin, of those that no graph has now the oldest.

    So graphs that come again in the same order, several at a time, find their values where they were, whichever was
    given back first; a GPU repeats what was recorded only then.
    """
    found: Evaluation = heappop(table.free)[1] if table.free else Evaluation(table)
    return found


class Evaluation:
    """What has become of the nodes that a graph recorded; the next graph of its types goes on with its memory.

    Attributes:
        nodes, plan: those that were taken over, of which the first `done` have run; what has run.
        arenas: the values.
        memory: where they are, as compiled code was told last.
        saving: where a run that saves values has them, as long as it takes; see `memory.plan.addresses.SavingRows`.
        back: the plan of the backward pass; gradient_rows: what the last one has filled.
        scratch: of one run, or one backward pass; the next uses it again.
        recorded: by node "file:line" where it was recorded, under `options(trace_lines=True)`, else None.
        known: the cached plan of its structure, whose nodes and plan these are, as long as the graph has not grown.
        profile: the batches as they ran, under `options(profile=True)`, else None.
        integers: those of its nodes, in the order of recording, and room for more (int32).
        policy: that was used last; fallbacks: steps at which one did not know the state.
        ran: what has run, and when.
        clock: what takes how long.
        is_scheduling: whether a policy is asked, which may ask for values.
        foreign: whether foreign ops may be called, which may ask for values, and what they keep.
        key: under which the plan of what was taken over is to be kept, if it is; fixes_device: whether the device
            follows from the key.
    """

    nodes: Nodes
    plan: GrowingPlan
    policy: Policy | None
    key: Hashable
    fixes_device: bool

    def __init__(self, table: TypeTable) -> None:
        self.table, self._number = table, next(_numbers)
        self._nodes, self._plan, self.back = Nodes(), GrowingPlan(), GrowingPlan()
        self.arenas = Arenas(table.windows, table.pool)
        self.gradient_rows = GradientRows(table.windows, self.arenas, table.pool)
        self.scratch = KeptBuffer(table.pool)
        self.memory: ArrayTable[Memory] | None = None
        self.saving = np.zeros(0, SAVING)

    def begin(
        self, options: Options, check_nan: bool, clock: Clock, integers: np.ndarray, known: CachedPlan | None
    ) -> None:
        """Be a graph's.

        Args:
            integers: of the nodes that are taken over first.
            known: the plan of a graph of the same structure, which has these nodes; None: there was none.
        """
        self.check_nan, self.clock, self.known = check_nan, clock, known
        self._splits = options.split
        self.integers = np.array(integers, np.int32)
        self.recorded: dict[int, str] | None = {} if options.trace_lines else None
        self.profile: list[Timed] | None = [] if options.profile else None
        self.ran: list[Ran] = []
        self.foreign = ForeignRun()
        self.done = self.fallbacks = self._n_sources = self._n_integers = 0
        self.is_scheduling = False
        self.key = self.policy = None
        self._backward: Backward | None = None
        if known is None:
            self.nodes, self.plan = self._nodes, self._plan
        else:
            self.nodes, self.plan, self._n_integers = known.nodes, known.plan, known.n_integers
            self.policy, self.fallbacks = known.policy, known.fallbacks

    def release(self, whole: bool) -> None:
        """Give all buffers back; the values are gone.

        Args:
            whole: nothing failed: another graph may go on with the memory, unless it is large, or there is enough.
        """
        self._forget_backward()
        self.foreign.kept.clear()
        if whole:
            self.gradient_rows.release()
            self.arenas.clear()
            self._nodes.clear()
            self._plan.clear()
            of_device = self.arenas.room + self.gradient_rows.room + self.scratch.bytes
            room = self._nodes.bytes + self._plan.bytes + self.back.bytes + of_device
            if len(self.table.free) < MOST_FREE and room <= MOST_BYTES:
                self.ran, self.known, self.recorded, self.profile = [], None, None, None
                heappush(self.table.free, (self._number, self))
                return
        self.scratch.give_back()
        self.gradient_rows.give_back()
        self.arenas.release()

    def take_over(self, types: np.ndarray, operands: np.ndarray, integers: np.ndarray) -> None:
        """Append recorded nodes, with operands found and views seen.

        Args:
            types, operands, integers: see `Columns`.
        """
        if self.known is not None:
            self._part_from_known()
        nodes, table = self.nodes, self.table
        first, base = nodes.n, nodes.n_args
        nodes.reserve(len(types), len(operands) + len(integers))
        begin, end = self._n_integers, self._n_integers + len(integers)
        if end > len(self.integers):
            grown = np.empty(2 * end, np.int32)
            grown[:begin] = self.integers[:begin]
            self.integers = grown
        given = first, base, begin, types, operands, integers, self.integers
        read = decode(*given, nodes.directory, table.facts.entries)
        while read == UNKNOWN:
            table.number(types)
            table.see(operands)
            read = decode(*given, nodes.directory, table.facts.entries)
        if read != len(operands):
            raise EdBatchError(DAMAGED)
        self._n_integers = end

    def _part_from_known(self) -> None:
        """Have records of its own, which may grow."""
        nodes, plan = self.nodes, self.plan
        if nodes is not self._nodes:
            self._nodes.reserve(nodes.n, nodes.n_args)
            self._nodes.put(nodes)
            self._plan.reserve(nodes.n, nodes.n_args)
            self._plan.put(plan)
            self.nodes, self.plan = self._nodes, self._plan
        self.known = None

    def split(self) -> Nodes:
        """What has run, and what is pending as it would run now."""
        nodes = self.nodes.copy()  # the graph may grow, and then be split otherwise
        self._split(nodes)
        return nodes

    def _split(self, nodes: Nodes) -> None:
        if self._splits:
            split_nodes(nodes, self.integers[: self._n_integers], self.done, self.table)

    def typed_graph(
        self, nodes: Nodes, first: int, end: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, TypedGraph]:
        """What has to be scheduled of the nodes from `first` to `end`.

        Returns:
            The numbers of the types in the table; which nodes, counted from `first`; and their graph.
        """
        table = self.table
        end = nodes.n if end is None else end
        present, chosen, kinds, indptr, operands, *more = contract(first, end, nodes.directory, table.facts.entries)
        graph = TypedGraph(kinds, indptr, operands, table.names(present))
        graph.topological, *users = more
        graph.successors = Successors(*users)
        return present, chosen, graph

    def whole_graph(self) -> TypedGraph:
        """What has run, and what is pending; with where runs have ended."""
        _, chosen, graph = self.typed_graph(self.split(), 0)
        ends = [int(np.count_nonzero(chosen < one.end.nodes)) for one in self.ran]
        graph.ends = tuple(dict.fromkeys(end for end in ends if 0 < end < len(graph)))
        return graph

    def run(self, policy: Policy | None, inputs: list[Any], saving: bool, in_rounds: bool) -> None:
        """Run the nodes that were taken over last.

        Args:
            policy: decides which type runs next; None: the rule `critical-path`.
            inputs: arrays of the input nodes, found by payload.
            saving: keep what a backward run will read.
            in_rounds: whether they are a round of programs.
        """
        known, clock = self.known, self.clock
        if known is not None:
            begin, end, n_sources = NOTHING, known.end, known.n_sources
            self.arenas.put(known.used)
        else:
            begin = self.ran[-1].end if self.ran else NOTHING
            n_sources = self._planned(policy, in_rounds)
            end = self.plan.used
        clock.stop("planning")
        self._execute(begin, end, n_sources, inputs, saving)
        self._n_sources += n_sources
        clock.stop("execution")
        self.done = self.nodes.n

    def _planned(self, policy: Policy | None, in_rounds: bool) -> int:
        """Plan what is pending; how many batches are of sources."""
        first, nodes, plan = self.done, self.nodes, self.plan
        n_sources, has_room, key = -1, True, self.key
        if nodes.n - first <= FEW and is_known(policy):
            plan.reserve(nodes.n, nodes.n_args)
            n_sources, has_room = plan_few(self._splits, first, *self._tables())
        if n_sources < 0:
            chosen, order, offsets = self._scheduled(policy, in_rounds)
            plan.reserve(nodes.n, nodes.n_args)
            n_sources, has_room = plan_batches(chosen, order, offsets, first, *self._tables())
        if not has_room:
            self.arenas.make_room()
        if key is not None and first == 0:
            planned = ref(self.table), nodes, plan, self.arenas.rows["used"], n_sources
            told = self.policy, self.fallbacks, self.fixes_device, self._n_integers
            plans.keep(key, CachedPlan(*planned, *told))
        self.key = None
        return n_sources

    def _tables(self) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What a plan is made of, see `planner.extend_plan`."""
        table = self.table
        self.arenas.see_layouts()
        return (
            len(table.windows.windows),
            self.nodes.directory,
            table.facts.entries,
            self.plan.entries,
            self.arenas.rows,
        )

    def _scheduled(self, policy: Policy | None, in_rounds: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pending nodes that have to be scheduled, and the batches that a policy makes of them."""
        clock = self.clock
        self._split(self.nodes)
        _, chosen, graph = self.typed_graph(self.nodes, self.done)
        clock.stop("lowering")
        if not len(graph):
            return chosen, chosen, np.zeros(1, np.int64)
        self.policy = policy = get_policy(DEFAULT) if policy is None else policy
        before = getattr(policy, "fallbacks", 0)
        self.is_scheduling = True
        try:
            schedule = schedule_of_round(policy, graph) if in_rounds else schedule_of(policy, graph)
        finally:
            self.is_scheduling = False
        self.fallbacks += getattr(policy, "fallbacks", 0) - before
        clock.stop("scheduling")
        return chosen, schedule.order, schedule.offsets

    def _execute(self, begin: Used, end: Used, n_sources: int, inputs: list[Any] | None, saving: bool) -> None:
        time, table = now(), self.table
        saved = dict[int, Saved]()
        if saving or table.any_calls:
            batches = self.plan.batches[begin.batches : end.batches]
            if saving or table.facts.tables.has_calls[batches["type"]].any():  # a backward pass calls nothing once more
                saved = claim_saved(self, batches)
        with self.foreign, self._computing():
            run_plan(self, begin, end, n_sources, inputs, bool(saved))
        if saved:
            words_of(self.saving)[:] = 0  # for runs that save nothing
        self.ran.append(Ran(begin, end, n_sources, saved, time))

    def run_again(self, inputs: Mapping[int, Any], saving: bool) -> None:
        """Run what has run once more, with parameters as they are now.

        Args:
            inputs: arrays of input nodes, by their ids; others keep theirs.
            saving: keep what a backward run will read.
        """
        self._forget_backward()
        self.foreign.kept.clear()
        nodes, clock = self.nodes, self.clock
        clock.restart()
        for node, array in inputs.items():
            if node < self.done:
                type, row = self.table.bound[nodes.types[node]], nodes.row.item(node)
                type.type.op.forward(self.table.backend, self.arenas.array(type.window)[row : row + 1], [array])
        ran, self.ran = self.ran, []
        windows = self.table.windows.windows
        self.arenas.used[[windows[saved.how.window].arena for one in ran for saved in one.saved.values()]] = 0
        done, self.done = self.done, -1  # until all of it has run
        for one in ran:
            self._execute(one.begin, one.end, one.n_sources, None, saving)
        self.done = done
        clock.stop("execution")

    def value(self, id: int) -> Any:
        """The value of an expression with this id, that has run."""
        node, code, table, nodes = id & NODE_MASK, id >> NODE_BITS, self.table, self.nodes
        if not code:
            window = table.facts.tables.windows.item(nodes.types.item(node))
        else:
            if code >= len(table.facts.tables.view_windows) or table.facts.tables.view_windows.item(code) < 0:
                table.see(np.array([id], np.int64))
            window = table.facts.tables.view_windows.item(code)
        found = table.backend.to_host(self.arenas.array(window)[nodes.row.item(node)])
        return found.copy() if found.shape else found[()]

    def values(self, ids: np.ndarray) -> list[Any]:
        """The values of expressions with these ids, that have run."""
        if len(ids) <= AT_ONCE:
            return [self.value(id) for id in ids.tolist()]
        values: list[Any] = [None] * len(ids)
        for chosen, found in self.table.rows(ids, self.nodes, self.arenas.array):
            for at, value in zip(chosen.tolist(), found, strict=True):
                values[at] = value
        return values

    def rows(self, ids: np.ndarray, spec: Spec) -> np.ndarray:
        """The values of expressions of one spec, that have run, side by side."""
        values = np.empty((len(ids), *spec.shape), spec.dtype)
        for chosen, found in self.table.rows(ids, self.nodes, self.arenas.array):
            values[chosen] = found
        return values

    def backward(self, ids: list[int], seeds: list[np.ndarray]) -> None:
        """Compute the gradients of expressions that have run, given their own; see `Backward`."""
        self._forget_backward()
        backward = Backward(self, ids, seeds)
        clock = self.clock
        clock.restart()
        with running.block(Source(clock.seconds)), self.foreign, self._computing():
            backward.run()
        clock.stop("backward")
        self._backward = backward  # once it is whole: gradients are read of it

    def gradients(self, ids: list[int], seeds: list[np.ndarray], asked: Asked) -> None:
        """Compute what is asked for of expressions that have run; what `backward` was called on last stays."""
        if self._backward is not None:
            self._backward.release()
        backward = Backward(self, ids, seeds)
        self.clock.restart()
        with self.foreign, self._computing():
            backward.gather(asked)
            backward.release()
        self.clock.stop("backward")

    def gradient(self, id: int | np.ndarray, spec: Spec) -> Any:
        """The gradient with respect to an expression, or several of one spec; see `Expression.gradient`."""
        if self._backward is None:
            raise EdBatchError("gradient: call backward() on an expression of this graph first")
        # Taken out while it works: it may go back once more, and what an interrupt left of that must not be read.
        backward, self._backward = self._backward, None
        clock = Clock(self.clock.seconds, self.clock.passed)
        with self.foreign, self._computing():
            found = backward.rows(np.array(id, ndmin=1), spec)
        clock.stop("backward")
        self._backward = backward
        return found[0] if isinstance(id, int) else found

    @property
    def last_backward(self) -> Backward | None:
        """The last backward pass, if its gradients are there."""
        found = self._backward
        return found if found is not None and found.is_there else None

    def no_gradient_reached(self) -> bool:
        """Whether the last backward pass led to no parameter, though some have run."""
        assert self._backward is not None
        has_run = self.nodes.types[: self.done]
        return not self._backward.has_flowed and bool(self.table.facts.tables.holds_parameters[has_run].any())

    def _forget_backward(self) -> None:
        before, self._backward = self._backward, None
        if before is not None:
            before.release()

    def _computing(self) -> AbstractContextManager[Any]:
        """In its block, what is computed is computed on the device, under the options in force."""
        return self.table.backend.active(current_options())

    @property
    def value_bytes(self) -> int:
        """Of all values, and what was saved with them."""
        return self.arenas.bytes - self.gradient_rows.bytes

    @property
    def batches(self) -> int:
        """How many have run, without those of what is given."""
        return self.plan.used.batches - self._n_sources
