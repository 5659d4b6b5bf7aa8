"""The graph a user opens: records nodes, and runs what is pending when a value is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from edbatch.base.context_stack import OpenContext
from edbatch.base.files import write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.base.locking import lock, original, signals_deferred, synchronized
from edbatch.base.stopwatch import Clock
from edbatch.devices import Device, current_device, opened_device
from edbatch.errors import EdBatchError, checked_flag, missing_memory, shown, warn
from edbatch.graph.cell.body import Body
from edbatch.graph.cell.tables import Compiled
from edbatch.graph.cell.trace import Trace
from edbatch.graph.columns import DAMAGED, Closed, Columns
from edbatch.graph.draws import checked_seed, first_draw
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray, expect_expression_class
from edbatch.graph.guard import expect_unchanged
from edbatch.graph.hints import explain_keyword
from edbatch.graph.lines import LinedTypes
from edbatch.graph.model.writes import follow, now, unfollow
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.number_warnings import note_read, tell_read
from edbatch.graph.opened import graphs, refuse_in_trace
from edbatch.graph.options import current_options
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_MASK
from edbatch.policy.policy import Policy, get_policy
from edbatch.policy.recorded import write_graph
from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.compile.cell import compile_cell
from edbatch.runtime.graph_errors import graph_errors, outdated
from edbatch.runtime.report import Counts, Report

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

asking = LazyModule("edbatch.runtime.backward.asked")
seeds_of = LazyModule("edbatch.runtime.backward.seeds")
reporting = LazyModule("edbatch.runtime.reporting")
running = LazyModule("edbatch.runtime.evaluation")
tables = LazyModule("edbatch.runtime.type_table")
caching = LazyModule("edbatch.runtime.plan_cache")


class ShownByName(type):
    """A metaclass: of the class's attributes, `help`, `dir` and completion show those that its `_shown` names.

    Special methods are shown where the class itself has them.
    """

    _shown: frozenset[str]

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name in cls._shown or (name[:2] == "__" and name in vars(cls))]


class Graph(Columns, metaclass=ShownByName):
    """A lazy graph: expressions built in its `with` block are recorded, and run in batches when a value is read.

    Reading a value runs everything that is pending, once. After that the graph may grow, and the next read runs only
    what is new. Values live as long as the graph, the graph as long as one of its expressions.

    Args:
        policy: decides which type runs next: a name ("depth", "agenda", "critical-path", ..., "none" for one node at a
            time); the path of a policy file; or a `Policy`, as `edbatch.learn` returns. None: the rule `critical-path`.
            A graph has the same numbers to the last bit whatever the process ran before it.
        dtype: float32 or float64, of inputs and constants; parameters bring their own, which must be the same.
        check_nan: raise an error that names the op after the first batch whose result has a NaN.
        device: where it runs ("cpu", "cuda", "cuda:1"). None: where its parameters are; if it has none, on the current
            device, see `edbatch.device`.
        seed: of what dropout draws in this graph; None: it follows from the last call of `edbatch.seed`.
        expression_class: a subclass of `Expression` that all functions and operators return here, also inside of cells,
            vertex functions and replayed functions, which are traced for each class. With `__slots__ = ()` it costs
            nothing. Arrays are of its `of_arrays`, a subclass of `ExpressionArray` that is made if it has none.

    Raises:
        EdBatchError: an argument is none of these.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph(policy="critical-path") as graph:
        ...     total = eb.sum([eb.square(eb.scalar(x)) for x in (1, 2, 3)])
        >>> total.value()
        np.float32(14.0)
        >>> graph.report().batches  # the squares, the sum
        2

        Expressions with a method more:

        >>> class Doubled(eb.Expression):
        ...     __slots__ = ()
        ...     def twice(self):
        ...         return self + self
        >>> with eb.Graph(expression_class=Doubled):
        ...     y = eb.scalar(3).twice().twice()
        >>> y.value()
        np.float32(12.0)
    """

    __slots__ = (
        "_check_nan", "_clock", "_device", "_entered", "_evaluation", "_failed", "_outdated", "_policy", "_read",
        "_writes", "in_rounds", "rounds",
    )  # fmt: skip
    _shown = frozenset([
        "backward", "batches", "draw", "dtype", "expression_class", "gradient", "is_trace", "memory_bytes", "options",
        "policy", "release", "report", "run", "save", "timeline", "value", "values",
    ])  # fmt: skip

    def __init__(
        self,
        policy: str | os.PathLike[str] | Policy | None = None,
        dtype: Any = "float32",
        check_nan: bool = False,
        device: str | Device | None = None,
        seed: int | None = None,
        expression_class: type[Expression] = Expression,
    ) -> None:
        if expression_class is not Expression:
            expect_expression_class(expression_class)
        super().__init__(dtype, expression_class=expression_class)
        if seed is not None:
            self.first_draw = first_draw(checked_seed("Graph: seed", seed), 0)
        self._policy = None if policy is None else get_policy(policy)
        self._check_nan = checked_flag("Graph: check_nan", check_nan)
        self._device = None if device is None else opened_device(device)
        self._evaluation: Evaluation | None = None  # once something is recorded, which settles the device
        self._failed: str | None = None
        self._read: dict[float, int] = {}  # what `float(x)` has read, and how many nodes there were
        self._entered: list[OpenContext[Columns]] = []
        self._clock = Clock({}, [] if self.options.profile else None)
        self.rounds = Counts()
        self.in_rounds = False  # whether what runs are rounds of programs, of which none comes again
        self._writes: list[tuple[int, int]] = []  # to parameters: how many nodes there were, and when it was
        self._outdated: dict[int, str] = {}  # nodes that ran too late, and the parameters that had changed
        follow(self)

    @graphs.entering
    def __enter__(self, block: OpenContext[Columns]) -> Self:
        if len(self._entered) > 1 and any(other.thread != block.thread for other in self._entered):
            raise EdBatchError("this graph is open in another thread; expected a graph for each thread")
        return self

    @graphs.leaving
    def __exit__(
        self,
        block: OpenContext[Columns] | None,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            explain_keyword(error)
            self._failed = f"its `with` block was left by {type(error).__name__}: {error}"
        if block is None:
            raise EdBatchError("this graph's `with` block was left more often than it was entered")
        if self.guards and self._failed is None and not self._entered:
            try:
                self.expect_unchanged()
            except BaseException as changed:
                self._fail(changed)
                raise

    def _end(self) -> None:
        """Give all buffers back, unless that is done; see `graph.recorder`. What an interrupt leaves, Python frees."""
        if sys.is_finalizing():  # then all of its memory goes
            return
        unfollow(self)
        if getattr(self, "_evaluation", None) is not None:
            self._give_up(self._failed)

    def _give_up(self, reason: str | None) -> None:
        """Give all buffers back, and have no values from now on, for a reason."""
        evaluation, whole = self._evaluation, self._failed is None
        self._failed, self._evaluation = reason, None
        if evaluation is not None:
            evaluation.release(whole)

    @property
    def policy(self) -> Policy | None:
        """The policy in use; None as long as none was given and nothing has run."""
        return self._policy if self._policy is not None or self._evaluation is None else self._evaluation.policy

    def value(self, expression: Expression) -> Any:
        """The value of one expression; see `Expression.value`."""
        if expression.__class__ is not Expression or expression.graph is not self:
            self._check_own("value", expression)
        refuse_in_trace("Expression.value")
        try:
            with lock:
                evaluation = self._evaluation
                if evaluation is None or self.n != evaluation.done or self._failed is not None:
                    evaluation = self._ran(saving=False, refuses=False)
                if self._outdated:
                    self._expect_current("value", [expression.id])
                return evaluation.value(expression.id)
        except SystemError as error:
            raise original(error)  # noqa: B904 (it has no other cause)

    def note_read(self, value: float) -> None:
        """Remember what `float(x)` has read."""
        note_read(self._read, value, self.n)

    def rows(self, ids: np.ndarray, spec: Spec) -> np.ndarray:
        """The values of expressions of one spec as an array, by their ids."""
        return self._current("value", ids.tolist()).rows(ids, spec)

    def _current(self, place: str, ids: Sequence[int]) -> Evaluation:
        """The evaluation once everything has run, if these have current values."""
        evaluation = self._ran(saving=False)
        if self._outdated:
            self._expect_current(place, ids)
        return evaluation

    def values(self, expressions: Sequence[Expression]) -> list[Any]:
        """The values of several expressions; see `forward`."""
        listed = listed_expressions("values", expressions)
        for at, expression in enumerate(listed):
            self._check_own(f"value {at}", expression)
        single = [x.id for x in listed if not isinstance(x, ExpressionArray)]
        found = self._current("values", single).values(np.array(single, np.int64))
        if len(single) == len(listed):
            return found
        values = iter(found)
        return [self.rows(x.ids, x.spec) if isinstance(x, ExpressionArray) else next(values) for x in listed]

    @synchronized
    def backward(self, outputs: Any, gradients: Any = None) -> None:
        """Compute the gradients of one expression or several; see `Expression.backward` and `edbatch.backward`."""
        evaluation, roots, seeds = self._ran_for("backward", outputs, gradients)
        with graph_errors():
            evaluation.backward(roots, seeds)
        if self._read:
            tell_read(self._read, self.constants)
        if roots and evaluation.no_gradient_reached():
            warn(
                "backward: no parameter got a gradient, though this graph has some: the expression depends on none, "
                "or the gradient is stopped on the way (none flows through numbers read by value() or float(x))"
            )

    def _ran_for(self, place: str, outputs: Any, gradients: Any) -> tuple[Evaluation, list[int], list[np.ndarray]]:
        """The evaluation once everything has run, and the roots of a backward pass; see `seeds.roots_of`."""
        self._expect_idle()
        if isinstance(outputs, ExpressionArray):
            outputs, gradients = [outputs], None if gradients is None else [gradients]
        if isinstance(outputs, list | tuple):
            roots, seeds = seeds_of.roots_of(place, outputs, gradients, self._check_own)
        else:
            self._check_own(place, outputs)
            roots, seeds = [outputs.id], [seeds_of.seed_of(place, outputs.spec, gradients)]
        evaluation = self._evaluation
        if evaluation is None or self.n != evaluation.done or self._failed is not None:
            evaluation = self._run(saving=not (self.options.recompute or current_options().recompute))
        if self._outdated:
            self._expect_current(place, roots)
        return evaluation, roots, seeds

    @synchronized
    def gradients(
        self, outputs: Any, of: Sequence[Any], gradients: Any, sparse: bool, unused_as_none: bool
    ) -> list[Any]:
        """Compute gradients with respect to parameters and expressions; see `edbatch.gradients`."""
        found = asking.Asked(list(of), self._check_own)
        evaluation, roots, seeds = self._ran_for("gradients", outputs, gradients)
        with graph_errors():
            evaluation.gradients(roots, seeds, found)
            if self._read:
                tell_read(self._read, self.constants)
            return found.results(sparse, unused_as_none)

    @synchronized
    def gradient(self, expression: Expression) -> Any:
        """The gradient with respect to one expression; see `Expression.gradient`."""
        self._check_own("gradient", expression)
        self._expect_idle()
        self._check()
        if self._evaluation is None:
            raise EdBatchError("gradient: call backward() on an expression of this graph first")
        evaluation = self._evaluation
        ids: Any = expression.id
        last = ids & NODE_MASK
        if isinstance(expression, ExpressionArray):
            ids = expression.ids
            last = (ids & NODE_MASK).max(initial=-1)
        if last >= evaluation.nodes.n:  # a view or a cell may show what was there before
            with graph_errors(self._fail):
                evaluation = self._taken_over()
        with graph_errors():
            return evaluation.gradient(ids, expression.spec)

    def run(self, saving: bool = False) -> None:
        """Run what is pending.

        Args:
            saving: save what a backward pass will read, as a run that `backward` starts does.

        Raises:
            EdBatchError: the graph was left by an exception, or failed before.
        """
        self._ran(saving=saving)

    @property
    def is_behind(self) -> bool:
        """Whether parameters were written to since the graph first ran."""
        evaluation = self._evaluation
        return evaluation is not None and bool(evaluation.ran) and evaluation.ran[0].time < now()

    @synchronized
    def reset(self, inputs: Mapping[int, Any], saving: bool = False) -> None:
        """Compute all that has run once more, with the parameters that there are now.

        Args:
            inputs: by the id of an input that has run another array for it, of the same shape.
            saving: see `run`.

        Raises:
            EdBatchError: the graph was left by an exception, or failed before.

        Example:
            >>> import edbatch as eb
            >>> with eb.Graph() as graph:
            ...     x = eb.input([1.0, 2.0])
            ...     y = x * 2
            >>> y.value(), graph.reset({x.id: [3.0, 4.0]}), y.value()
            (array([2., 4.], dtype=float32), None, array([6., 8.], dtype=float32))
        """
        self._expect_idle()
        self._check()
        if self._evaluation is not None:
            with graph_errors(self._fail):
                self._evaluation.run_again(inputs, saving)

    @synchronized
    def report(self) -> Report:
        """What has run so far: batches against the lower bound, operands viewed and gathered, time by stage."""
        if isinstance(self.types, Closed):
            self._check()
        report = Report() if self._evaluation is None else reporting.report_of(self._evaluation, self.policy)
        report._tell_rounds(self.rounds)
        report.policy = self._named_policy()
        return report

    @synchronized
    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the graph that is scheduled (without sources and views); runs nothing.

        Up to 200 nodes are drawn each, in the colours of the batches in which they ran; of more, the batches; and of
        more than 200 batches, the types. An arrow leads from what is computed to what reads it.

        Args:
            path: of the picture, which is replaced in one step: PNG, SVG or PDF, as the name ends.

        Raises:
            EdBatchError: Matplotlib or igraph is not installed (they come with the extra `plot`), the graph is empty or
                has no values, the name ends otherwise, or the file cannot be written.

        Example:
            >>> import pathlib, tempfile, edbatch as eb
            >>> with eb.Graph(policy="critical-path") as graph:
            ...     y = eb.sum([eb.tanh(eb.scalar(x)) for x in (1, 2, 3)])
            >>> graph.run()
            >>> graph.draw(pathlib.Path(tempfile.mkdtemp()) / "graph.svg")
        """
        self._check()
        with graph_errors(self._fail):
            evaluation = self._taken_over()
        if not evaluation.nodes.n:
            raise EdBatchError("draw: expected a graph in which something was recorded, got an empty one")
        reporting.diagram_of(evaluation, self._named_policy()).write(path)

    @synchronized
    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Write when each stage and each batch ran, for https://ui.perfetto.dev or chrome://tracing.

        A row has the stages, as in `report()`, another the batches of forward runs: each with its type, how many nodes
        it has, and how many operands were gathered. Batches are timed one by one, so the graph has to be made under
        `edbatch.options(profile=True)`.

        Args:
            path: of a JSON file, which is replaced in one step.

        Raises:
            EdBatchError: nothing was timed, or the file cannot be written.

        Example:
            >>> import json, pathlib, tempfile, edbatch as eb
            >>> with eb.options(profile=True), eb.Graph(policy="critical-path") as graph:
            ...     y = eb.sum([eb.tanh(eb.scalar(x)) for x in (1, 2, 3)])
            >>> graph.run()
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "timeline.json"
            >>> graph.timeline(path)
            >>> [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event["tid"] == 2]
            ['thread_name', 'tanh x 3', 'sum_list x 1']
        """
        evaluation, passed = self._evaluation, self._clock.passed
        if passed is None:
            raise EdBatchError("timeline: record the graph under edbatch.options(profile=True)")
        if evaluation is None or not evaluation.done:
            raise EdBatchError("timeline: the graph has not run; read a value, or call run(), first")
        write_atomically(path, reporting.timeline_of(evaluation, passed))

    @property
    def memory_bytes(self) -> int:
        """Of all values that are there."""
        return 0 if self._evaluation is None else self._evaluation.value_bytes

    @property
    def batches(self) -> int:
        """How many have run."""
        return 0 if self._evaluation is None else self._evaluation.batches

    def successor(self, reason: str) -> Graph:
        """An empty graph like this one, which takes its place wherever it is open, and goes on with what it draws.

        This one gives back its memory; what is asked of it from now on is refused for a reason.
        """
        of_class = self.expression_class
        new = type(self)(self._policy, self.dtype, self._check_nan, self._device, expression_class=of_class)
        for of_all in ("options", "inlines", "careful", "rounds", "in_rounds"):
            setattr(new, of_all, getattr(self, of_all))
        for drawn in ("first_draw", "next_draw", "stream", "programs"):
            setattr(new, drawn, getattr(self, drawn))
        if self.options.trace_lines:
            new.types = LinedTypes()
        evaluation = self._evaluation
        if evaluation is not None:
            new._device = evaluation.table.device
        with signals_deferred():
            new._entered = self._entered  # of the same blocks: who entered this one leaves them
            for block in new._entered:
                block.value = new
            self._give_up(reason)
        return new

    @synchronized
    def release(self) -> None:
        """Give back the memory of all values and gradients now, and not when the last expression is gone.

        Gradients of parameters stay. Reading anything of the graph and recording more are errors from then on; a second
        call does nothing.

        Raises:
            EdBatchError: called by a policy, or a foreign op, while the graph runs.

        Example:
            >>> import edbatch as eb
            >>> W = eb.ParameterCollection().add_parameters(2, init=1.0)
            >>> with eb.Graph() as graph:
            ...     loss = eb.dot(W, W)
            >>> loss.backward()
            >>> graph.release()
            >>> graph.memory_bytes, W.grad()
            (0, array([2., 2.], dtype=float32))
            >>> loss.value()
            Traceback (most recent call last):
            edbatch.errors.EdBatchError: this graph has no values: release() has given its memory back
        """
        self._expect_idle()
        if self._evaluation is not None and self._evaluation.is_scheduling:
            raise EdBatchError("release: a policy is scheduling this graph, which is about to run")
        reason = "release() has given its memory back"
        with signals_deferred():
            with suppress(EdBatchError):
                self.flush_arrays()  # who asks for their ids finds them
            closed = self.types = Closed(f"this graph records nothing more: {reason}")
            for graph in self.held_arrays():
                graph.types = closed
            self.operands, self.integers = [], []
            self.constants.clear()
            self.inputs.clear()
            unfollow(self)
            self._give_up(reason)

    def __dir__(self) -> list[str]:
        return dir(type(self))

    def __repr__(self) -> str:
        evaluation = self._evaluation
        done = 0 if evaluation is None else evaluation.done
        state = f"; {self._failed}" if self._failed is not None else ""
        return f"Graph({self.n:,} nodes, {done:,} of them have run{state})"

    def _repr_html_(self) -> str:
        """For notebooks: what was recorded, and what has run; runs nothing."""
        shown = f"<p>{escape(repr(self))}</p>"
        return shown if self._evaluation is None else shown + self.report()._repr_html_()

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
        write_graph(path, self.typed_graph())

    @synchronized
    def typed_graph(self) -> TypedGraph:
        """The whole graph as a policy sees it, and where its runs have ended; runs nothing."""
        self._check()
        with graph_errors(self._fail):
            return self._taken_over().whole_graph()

    def compile(self, body: Body, arguments: Sequence[str]) -> Compiled:
        """The body of a cell made ready to run; see `runtime.compile.cell`."""
        return compile_cell(body, arguments, self.options)

    def _named_policy(self) -> str:
        """What chooses the batches, in a word or two."""
        if self.policy is not None:
            return getattr(self.policy, "name", type(self.policy).__name__)
        return "none needed" if self.batches else "none yet"

    def type_of(self, expression: Expression) -> NodeType:
        """The type of an expression's node."""
        self._check_own("type_of", expression)
        node, evaluation = expression.id & NODE_MASK, self._evaluation
        taken = 0 if evaluation is None else evaluation.nodes.n
        if evaluation is not None and node < taken:
            return evaluation.table.bound[evaluation.nodes.types[node]].type
        return TYPES[self.types[node - taken]]

    def _check_own(self, place: str, expression: Any) -> None:
        if not isinstance(expression, Expression):
            raise EdBatchError(f"{place}: expected an expression, got {type(expression).__name__}")
        own = expression.graph.base if isinstance(expression, ExpressionArray) else expression.graph
        if own is not self:
            if isinstance(own, Trace):
                raise EdBatchError(f"{place}: {own.leaked}")
            hint = ", that of one vertex in a vertex function" if own is not None and own.base is self else ""
            raise EdBatchError(f"{place}: an expression of another graph{hint}")

    def note_write(self, time: int) -> None:
        """Be told that parameters were written to: what waits was recorded before."""
        if self._failed is not None:
            return
        if self.array_graphs:
            with suppress(EdBatchError):  # of a graph that is damaged, which is said when it runs
                self.flush_arrays()
        done = 0 if self._evaluation is None else self._evaluation.done
        if self.n > (self._writes[-1][0] if self._writes else done):
            self._writes.append((self.n, time))

    def _expect_current(self, place: str, ids: Iterable[int]) -> None:
        """Check that expressions ran with the parameters that they were recorded with."""
        names = next((self._outdated[id & NODE_MASK] for id in ids if id & NODE_MASK in self._outdated), None)
        if names is not None:
            raise EdBatchError(
                f"{place}: {names} changed after this was recorded and before it ran (an update, set_value, load or "
                "touch), so it would mix old and new values; read it, or call backward(), before parameters change, "
                "or record it again"
            )

    def _fail(self, error: BaseException) -> None:
        """Have no values from now on, because of an exception."""
        found = original(error)
        self._failed = f"running it failed with {type(found).__name__}: {found}"

    def _check(self) -> None:
        if self._failed is not None:
            raise EdBatchError(f"this graph has no values: {self._failed}")

    def _expect_idle(self) -> None:
        if self._evaluation is not None and self._evaluation.foreign.is_open:
            raise EdBatchError(
                "a foreign op asks the graph that calls it for a value or a gradient, or to release them; expected it "
                "to compute with the arrays that it is given"
            )

    def _run(self, saving: bool, refuses: bool = True) -> Evaluation:
        """All that was recorded, after it has run.

        Args:
            saving: what runs now keeps what a backward run will read.
            refuses: whether to see that nothing is traced.
        """
        if refuses:
            refuse_in_trace("a run of a graph")
        evaluation = self._evaluation
        if evaluation is not None:
            self._expect_idle()
            if evaluation.is_scheduling:
                raise EdBatchError(
                    f"policy {self._named_policy()!r}: asks for a value of the graph that it is scheduling, which has "
                    "none before; expected it to decide by the TypedGraph that it is given, or by a number that was "
                    "read earlier"
                )
        if self._failed is not None:
            self._check()
        try:
            if evaluation is None or self.n != evaluation.done:
                self._clock.stop("construction")
            if evaluation is None or self.types or self.array_graphs or self.n != evaluation.nodes.n:
                evaluation = self._taken_over(not self.in_rounds and not self._writes)
            if self.n != evaluation.done:
                if self.guards:
                    expect_unchanged(self.guards.values())
                if self._writes or self._outdated:
                    self._outdated |= outdated(evaluation, self._writes, self._outdated)
                    self._writes.clear()
                recorded = self.n
                evaluation.run(self._policy, self.inputs, saving, self.in_rounds)
                if self.n != recorded:
                    raise EdBatchError(
                        "a signal's handler, a finalizer, a policy or a foreign op recorded nodes in it meanwhile"
                    )
                self.n = evaluation.done  # what is recorded later comes after parts that were split off
                self.inputs.clear()
            return evaluation
        except BaseException:
            with graph_errors(self._fail):
                raise

    _ran = synchronized(_run)

    def _taken_over(self, plans: bool = False) -> Evaluation:
        """The evaluation, with all that was recorded; `plans`: and with its plan, if that is known."""
        evaluation = self._evaluation
        types, operands, integers, lines = taken = self.take()
        n, plain = 0 if evaluation is None else evaluation.nodes.n, self.options.plain
        if self.n != n + len(types):
            raise EdBatchError(DAMAGED)
        key = known = None
        if plans and n == 0 and self.n:
            key = caching.key_of(taken, self._policy, self.options.split, plain, self._device)
            if key is not None:
                known, comes_again = caching.plans.find(key)
                key = key if comes_again else None
            if known is not None and len(integers) != known.n_integers:
                raise EdBatchError(DAMAGED)
        if evaluation is None or n == 0:
            if evaluation is not None:
                self._evaluation = None
                evaluation.release(whole=True)
            device = None if known is not None else self._device or _device_of(types)
            table = known.table() if known is not None else tables.shared_table(device or current_device(), plain)
            evaluation = running.evaluation_of(table)
            evaluation.begin(self.options, self._check_nan, self._clock, integers, known)
            evaluation.fixes_device, self._evaluation = device is not None, evaluation
        if lines and evaluation.recorded is not None:
            evaluation.recorded.update(enumerate(lines, n))
        if known is None:
            evaluation.take_over(types, operands, integers)
            evaluation.key = key
        return evaluation


def _device_of(types: np.ndarray) -> Device | None:
    """The device of the first parameter that types have; None: they have none."""
    for several in (types[:8], types[8:]):  # the first few tell, as a rule
        for id in dict.fromkeys(several.tolist()):
            if (found := TYPES[id].device) is not None:
                return found
    return None


def listed_expressions(place: str, expressions: Any) -> list[Any]:
    """A caller's expressions as a list."""
    try:
        return list(expressions)
    except TypeError:
        raise EdBatchError(f"{place}: expected a list of expressions, got {shown(expressions)}") from None
    except MemoryError:
        raise missing_memory(place, expressions) from None


def forward(expressions: Sequence[Expression]) -> list[Any]:
    """The values of many expressions at once, in their order; runs what is pending, once.

    Args:
        expressions: of one graph, or arrays of such; an empty list gives an empty list.

    Returns:
        Per expression an array of its shape, or a NumPy scalar; per `ExpressionArray` an array [n, *shape].

    Raises:
        EdBatchError: something is no expression, or belongs to another graph.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     values = eb.forward([eb.scalar(x) * 2 for x in (1, 2)])
        >>> values
        [np.float32(2.0), np.float32(4.0)]
    """
    listed = listed_expressions("forward", expressions)
    return owner_of("value 0", listed).values(listed) if listed else []


def owner_of(place: str, listed: Sequence[Any]) -> Any:
    """The graph of the first of some expressions; one that is never run refuses what is asked of it."""
    if not isinstance(listed[0], Expression):
        raise EdBatchError(f"{place}: expected an expression, got {type(listed[0]).__name__}")
    return listed[0].graph.base if isinstance(listed[0], ExpressionArray) else listed[0].graph
