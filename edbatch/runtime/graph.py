"""The graph a user opens: records nodes, and runs what is pending when a value is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import numpy as np

from edbatch.devices import Device, current_device, opened_device
from edbatch.errors import EdBatchError
from edbatch.graph.body import Body
from edbatch.graph.columns import Columns, _current
from edbatch.graph.compiled import Compiled
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.options import current_options
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Plan
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy
from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.compile_cell import compile_cell
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.ran import Ran
from edbatch.runtime.report import Report
from edbatch.runtime.type_table import shared_table


class Graph(Columns):
    """A lazy graph: expressions built in its `with` block are recorded, and run in batches when a value is read.

    Reading a value runs everything that is pending, once. After that the graph may grow, and the next read runs only
    what is new. Values live as long as the graph, the graph as long as one of its expressions.

    Args:
        policy: decides which type runs next. None: learned on first use for this set of types, then reused (see
            `edbatch.runtime.learned`); a name ("depth", "agenda", "sufficient", ..., "none" for one node at a time);
            the path of a policy file; or a `Policy`.
        dtype: float32 or float64, of inputs and constants; parameters bring their own, which must be the same.
        check_nan: raise an error that names the op after the first batch whose result has a NaN.
        device: where it runs ("cpu", "cuda", "cuda:1"). None: where its parameters are; if it has none, on the current
            device, see `edbatch.device`.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph(policy="sufficient") as graph:
        ...     total = eb.sum([eb.square(eb.scalar(x)) for x in (1, 2, 3)])
        >>> total.value()
        np.float32(14.0)
        >>> graph.report().batches  # the squares, the sum
        2
    """

    __slots__ = (
        "_arenas",
        "_backward",
        "_check_nan",
        "_device",
        "_done",
        "_executor",
        "_failed",
        "_last",
        "_learns",
        "_nodes",
        "_plans",
        "_policy",
        "_ran",
        "_report",
        "_scheduled",
        "_table",
        "_tokens",
    )

    def __init__(
        self,
        policy: str | os.PathLike[str] | Policy | None = None,
        dtype: Any = "float32",
        check_nan: bool = False,
        device: str | Device | None = None,
    ) -> None:
        super().__init__(dtype)
        self._policy = None if policy is None else get_policy(policy)
        self._learns = policy is None
        self._check_nan = check_nan
        self._device = None if device is None else opened_device(device)
        self._nodes = Nodes()
        self._done = 0  # nodes that have run
        self._executor: Any = None
        self._ran: list[Ran] = []
        self._backward: Any = None
        self._report = Report()
        self._plans: list[Plan] = []  # that have run and are not yet in the report
        self._scheduled: list[TypedGraph] = []
        self._failed: str | None = None
        self._tokens: list[Any] = []
        self._last = perf_counter()

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())
        if error is not None:
            self._failed = f"its `with` block was left by {type(error).__name__}: {error}"

    def __del__(self) -> None:
        if getattr(self, "_backward", None) is not None:
            self._backward.release()
        for ran in getattr(self, "_ran", []):
            for saved in ran.saved.values():
                saved.release()
        if getattr(self, "_executor", None) is not None:
            self._executor.release()
        if hasattr(self, "_arenas"):
            self._arenas.release()

    @property
    def policy(self) -> Policy | None:
        """The policy in use; None as long as none was given and nothing has run."""
        return self._policy

    def value(self, expression: Expression) -> Any:
        """The value of one expression; see `Expression.value`."""
        return self.values([expression])[0]

    def values(self, expressions: Sequence[Expression]) -> list[Any]:
        """The values of several expressions; see `forward`."""
        for at, expression in enumerate(expressions):
            if not isinstance(expression, Expression):
                raise EdBatchError(f"value {at}: expected an expression, got {type(expression).__name__}")
            if expression.graph is not self:
                raise EdBatchError(f"value {at}: an expression of another graph")
        self.run()
        ids = np.array([x.id for x in expressions], np.int64)
        self._table.see(ids)
        nodes, codes = ids & NODE_MASK, ids >> NODE_BITS
        plain = self._table.window[self._nodes.types[nodes]]
        windows = np.where(codes > 0, self._table.view_windows[codes], plain)
        values: list[Any] = [None] * len(expressions)
        backend = self._table.backend
        for window in np.unique(windows).tolist():
            chosen = np.flatnonzero(windows == window)
            # One copy of all rows from a window; every value is a row of it.
            found = backend.rows_to_host(self._arenas.array(window), self._nodes.row[nodes[chosen]])
            for at, value in zip(chosen.tolist(), found, strict=True):
                values[at] = value
        return values

    def backward(self, expression: Expression, gradient: Any = None) -> None:
        """Compute the gradients of one expression; see `Expression.backward`."""
        from edbatch.runtime.backward import Backward, seed_of

        seed = seed_of(expression.spec, gradient)
        self._run_pending(saving=not (self.options.recompute or current_options().recompute))
        if self._backward is not None:
            self._backward.release()
        self._backward = Backward(
            self._table, self._arenas, self._nodes, self._ran, expression.id, seed, self._check_nan
        )
        with self._computing():
            self._backward.run()

    def gradient(self, expression: Expression) -> Any:
        """The gradient with respect to one expression; see `Expression.gradient`."""
        backward = self._backward
        if backward is None:
            raise EdBatchError("gradient: expected a call of backward() on an expression of this graph before")
        with self._computing():
            return backward.gradient(expression.id, expression.spec)

    def run(self) -> None:
        """Run what is pending.

        Raises:
            EdBatchError: the graph was left by an exception, or failed before.
        """
        self._run_pending(saving=False)

    def _run_pending(self, saving: bool) -> None:
        if self._failed is not None:
            raise EdBatchError(f"this graph has no values: {self._failed}")
        if self.n == self._done:
            return
        try:
            self._run(saving)
        except BaseException as error:
            self._failed = f"running it failed with {type(error).__name__}: {error}"
            raise

    def report(self) -> Report:
        """What has run so far: batches against the lower bound, operands viewed and gathered, time by stage."""
        from edbatch.policy.bounds import lower_bound

        report = self._report
        while self._plans:
            report.count_operands(self._plans.pop(), self._table.windows)
        report.policy = "none yet" if self._policy is None else self._policy.name
        report.lower_bound = sum(lower_bound(graph) for graph in self._scheduled)
        report.types = len({name for graph in self._scheduled for name in graph.names})
        report.memory_bytes = self._arenas.bytes if self._nodes.n else 0
        return report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph that is scheduled (without sources and views), with type names, for `edbatch learn`.

        Raises:
            EdBatchError: the file cannot be written.

        Example:
            >>> import pathlib, tempfile, edbatch as eb
            >>> with eb.Graph() as graph:
            ...     y = eb.tanh(eb.scalar(1))
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.txt"
            >>> graph.save(path)
            >>> print(path.read_text())
            1
            0 0
            # type 0 tanh([])
        """
        from edbatch.policy.recorded import write_graph

        write_graph(path, self.typed_graph())

    def typed_graph(self) -> TypedGraph:
        """The whole graph as a policy sees it; runs nothing."""
        return self._contracted(self._all_nodes(), 0)[1]

    def compile(self, body: Body, arguments: Sequence[str]) -> Compiled:
        """The body of a cell made ready to run; see `runtime.compile_cell`."""
        return compile_cell(body, arguments, self.options)

    def type_of(self, expression: Expression) -> NodeType:
        """The type of an expression's node."""
        node, taken = expression.id & NODE_MASK, self._nodes.n
        if node >= taken:
            return TYPES[self.types[node - taken]]
        return self._table.bound[self._nodes.types[node]].type

    def _take_over(self) -> None:
        """Move what was recorded into `_nodes`, with operands found and views seen."""
        from edbatch.runtime.lower import UNKNOWN, decode

        types, args = self.take()
        if not self._nodes.n:
            self._open(types)
        if not len(types):
            return
        nodes, table = self._nodes, self._table
        first, base = nodes.n, nodes.n_args
        nodes.reserve(len(types), len(args))
        nodes.args[base : nodes.n_args] = args
        read = UNKNOWN
        while read == UNKNOWN:
            columns = nodes.types[first : nodes.n], nodes.starts[first : nodes.n], nodes.counts[first : nodes.n]
            read = decode(types, args, base, table.local, table.n_args, table.n_payload, table.view_windows, *columns)
            if read == UNKNOWN:
                table.number(types)
                table.see(args)
        if read != len(args):
            raise EdBatchError("the graph is damaged: recording a node was interrupted")

    def _open(self, types: np.ndarray) -> None:
        """Settle the device, now that something is recorded."""
        of_parameters = (found for type in dict.fromkeys(types.tolist()) if (found := TYPES[type].device) is not None)
        self._table = shared_table(self._device or next(of_parameters, None) or current_device())
        self._report.device = self._table.device.name
        self._arenas = Arenas(self._table.windows, self._table.pool)

    def _computing(self) -> AbstractContextManager[Any]:
        """In its block, what is computed is computed on the device, under the options in force."""
        options, backend = current_options(), self._table.backend
        backend.configure(options.record, options.precision)
        return backend.active()

    def _all_nodes(self) -> Nodes:
        """What has run, and what is pending as it would run now."""
        from edbatch.runtime.split import split_nodes

        self._take_over()
        if not self.options.split:
            return self._nodes
        nodes = self._nodes.copy()  # the graph may grow, and then be split otherwise
        split_nodes(nodes, self._done, self._table)
        return nodes

    def _contracted(self, nodes: Nodes, first: int) -> tuple[np.ndarray, TypedGraph]:
        """What has to be scheduled of the nodes from `first` on: node ids (from `first`), and the graph of them."""
        from edbatch.runtime.lower import contract

        table = self._table
        present, kinds, chosen, indptr, operands = contract(
            first, nodes.types[first : nodes.n], table.is_source,
            nodes.starts[first : nodes.n], nodes.counts[first : nodes.n], nodes.args,
        )  # fmt: skip
        return chosen, TypedGraph(kinds, indptr, operands, table.names(present))

    def _run(self, saving: bool) -> None:
        """Run what is pending; with `saving`, keep what a backward run will read."""
        from edbatch.memory.planner import make_plan
        from edbatch.runtime.execute import Executor
        from edbatch.runtime.learned import default_policy
        from edbatch.runtime.lower import with_sources
        from edbatch.runtime.split import split_nodes

        first, seconds = self._done, self._report.seconds
        clock = _Clock(seconds, self._last)
        clock.stop("construction")
        self._take_over()
        if self.options.split:
            split_nodes(self._nodes, first, self._table)
            self.n = self._nodes.n  # what is recorded later comes after the parts
        chosen, graph = self._contracted(self._nodes, first)
        clock.stop("lowering")
        if self._learns and len(graph):  # what is new may have types that the last policy does not know
            self._policy = default_policy(graph)
            clock.stop("learning")
        nodes, table = self._nodes, self._table
        kinds = nodes.types[first : nodes.n]
        order, offsets = chosen[:0], np.zeros(1, np.int64)
        if len(graph):
            assert self._policy is not None
            before = getattr(self._policy, "fallbacks", 0)
            schedule = self._policy.schedule(graph)
            order, offsets = chosen[schedule.order], schedule.offsets
            self._report.fallbacks += getattr(self._policy, "fallbacks", 0) - before
            self._report.batches += len(schedule)
            self._scheduled.append(graph)
            clock.stop("scheduling")
        order, offsets, n_sources = with_sources(order, offsets, kinds, table.is_source)
        rows = self._arenas.rows()
        plan = make_plan(
            order, offsets,
            nodes.types[: nodes.n], nodes.starts[first : nodes.n], nodes.counts[first : nodes.n],
            table.n_payload, table.variadic, nodes.args, table.window, table.view_windows, nodes.row, first, rows,
        )  # fmt: skip
        clock.stop("planning")
        if self._executor is None:
            self._executor = Executor(self._arenas, table, self._check_nan)
        executor, saved = self._executor, {}
        if saving:
            from edbatch.runtime.saving import SavingTable

            saving_table = SavingTable(table, plan)
            saved = saving_table.saved
            executor = Executor(self._arenas, saving_table, self._check_nan)  # type: ignore[arg-type]
        with self._computing():
            indices = executor.run(plan, n_sources, self.inputs)
        if saving:
            executor.release()
        self._ran.append(Ran(plan, indices, n_sources, order + first, saved))
        self.inputs.clear()
        clock.stop("execution")
        self._done = self.n
        self._report.nodes += len(graph)
        self._report.edges += len(graph.operands)
        self._plans.append(plan)
        self._last = perf_counter()


class _Clock:
    """Adds the time since the last stop to a stage."""

    def __init__(self, seconds: dict[str, float], start: float) -> None:
        self._seconds = seconds
        self._start = start

    def stop(self, stage: str) -> None:
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._start
        self._start = now


def forward(expressions: Sequence[Expression]) -> list[Any]:
    """The values of many expressions at once, in their order; runs what is pending, once.

    Args:
        expressions: of one graph; an empty list gives an empty list.

    Returns:
        Per expression an array of its shape, or a NumPy scalar.

    Raises:
        EdBatchError: something is no expression, or belongs to another graph.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     values = eb.forward([eb.scalar(x) * 2 for x in (1, 2)])
        >>> values
        [np.float32(2.0), np.float32(4.0)]
    """
    listed = list(expressions)
    if not listed:
        return []
    if not isinstance(listed[0], Expression):
        raise EdBatchError(f"value 0: expected an expression, got {type(listed[0]).__name__}")
    owner = listed[0].graph
    assert isinstance(owner, Graph)
    return owner.values(listed)
