"""Run programs over values: each until it waits, then all that they wait for at once, and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from contextlib import ExitStack
from contextvars import copy_context
from itertools import islice
from time import perf_counter
from types import CoroutineType
from typing import Any

from edbatch.base.later import Later
from edbatch.base.numbers import check_integer
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.columns import graphs
from edbatch.graph.draws import stream
from edbatch.graph.expression import Expression, driven
from edbatch.runtime.graph import Graph, forward
from edbatch.runtime.programs.forgetting import Forgetting
from edbatch.runtime.programs.requests import Parts, asked, close, is_program
from edbatch.runtime.programs.task import Task

tqdm = Later("tqdm")


def run(
    programs: Iterable[Any], limit: int | None = None, return_exceptions: bool = False, progress: bool = False
) -> list[Any]:
    """Run programs, one for each sample, in which what comes next depends on values; what they return, in order.

    A program is a coroutine (what `async def` gives) in which `await x` is the value of an expression x, or a generator
    in which `yield x` is. All run until all wait; then what they wait for is computed, batched across all of them; and
    so on. Programs call others by `await` (`yield from` in generators); `await values([...])` waits for several
    expressions, `await all(f(x), g(y))` runs parts of one sample side by side.

    The graph of all rounds is one: losses are built on the way, and `backward` is called once, at the end. It is the
    graph that is open; then all values are kept. Where none is open, it is one of its own, for inference: values that
    neither programs that run nor results can reach are given back on the way, so that any number of samples, or of
    steps, takes bounded memory. What is drawn at random (dropout) in a program depends on its number among
    the programs, not on what else runs. Each program has a context of its own: `with edbatch.options(...)` in one does
    not change others.

    The same code runs one sample at a time, with the same values, where nobody drives it: `await` then computes what is
    asked for, in any event loop.

    Args:
        programs: coroutines or generators, in any iterable, which is read as programs begin.
        limit: so many run at a time, the next begins when one ends; None: all.
        return_exceptions: put what a program raises in its place, and have the others go on. Otherwise the others are
            closed, and it is raised with a note of the program's number.
        progress: show a bar.

    Raises:
        EdBatchError: there is something else than a program among them, or a program waits for something else.

    Example:
        >>> import edbatch as eb
        >>> async def halve(x):
        ...     steps = 0
        ...     while await x > 1:
        ...         x, steps = x * 0.5, steps + 1
        ...     return steps
        >>> with eb.Graph():
        ...     eb.run([halve(eb.scalar(n)) for n in (1, 8, 5)])
        [0, 3, 3]
    """
    if limit is not None:
        check_integer("run", "limit", limit)
    kept = checked_flag("run: return_exceptions", return_exceptions)
    quiet = not checked_flag("run: progress", progress)
    if isinstance(programs, CoroutineType) or not isinstance(programs, Iterable):
        raise EdBatchError(f"run: expected a list of programs, got {shown(programs)}")
    with ExitStack() as opened:
        total = None
        if isinstance(programs, Sized):
            total = len(programs)
            opened.callback(close, programs)  # those that have not begun, if another fails
        graph, forgetting = graphs.innermost(), None
        if graph is None:
            graph = opened.enter_context(Graph())
            forgetting = Forgetting(graph)
        if not isinstance(graph, Graph):
            raise EdBatchError("run: inside a cell, which is traced and has no values; expected it outside")
        bar = opened.enter_context(tqdm.tqdm(total=total, unit="program", disable=quiet))
        return _Rounds(graph, programs, limit, kept, bar, forgetting).run()


class _Rounds:
    """Programs in flight: steps of all that can go on, then what they wait for, and so on.

    Attributes:
        results: of those that have ended, by number.
    """

    def __init__(
        self,
        graph: Graph,
        given: Iterable[Any],
        limit: int | None,
        kept: bool,
        bar: Any,
        forgetting: Forgetting | None = None,
    ) -> None:
        self.results: dict[int, Any] = {}
        self._graph = graph
        self._given = enumerate(given)
        self._limit = limit
        self._kept = kept
        self._bar = bar
        self._forgetting = forgetting
        self._stream = stream(graph.stream, graph.programs)
        graph.programs += 1
        self._context = copy_context()
        self._context.run(driven.set, True)
        self._flying: dict[int, Task] = {}
        self._ready: list[Task] = []
        self._waiting: list[Task] = []

    def run(self) -> list[Any]:
        """All programs to their ends."""
        rounds = self._graph.rounds
        before, begun = (self._graph.stream, self._graph.next_draw), perf_counter()
        try:
            self._begin()
            while self._ready:
                for task in self._ready:  # which grows meanwhile
                    if not task.closed:
                        self._step(task)
                self._ready = []
                if self._waiting:
                    rounds.count += 1
                    rounds.waited += len(self._waiting)
                    self._answer()
                    if self._forgetting is not None and self._forgetting.due():
                        self._graph = self._forgetting.move((self._flying, self.results, self._given))
        finally:
            with ExitStack() as ending:  # of those that something else than their end has stopped
                rounds.seconds += perf_counter() - begun
                ending.callback(self._restore, *before)
                for task in self._flying.values():
                    ending.callback(task.close)
        return [self.results[number] for number in range(len(self.results))]

    def _restore(self, stream: int, next_draw: int) -> None:
        self._graph.stream, self._graph.next_draw = stream, next_draw

    def _begin(self) -> None:
        """Begin as many programs as may be in flight."""
        count = None if self._limit is None else self._limit - len(self._flying)
        for number, program in islice(self._given, count):
            if not is_program(program):
                raise EdBatchError(
                    f"run: program {number}: expected a coroutine or a generator, what a call of an `async def` "
                    f"function returns, got {shown(program)}"
                )
            task = Task(program, self._context.copy(), stream(self._stream, number), number)
            self._flying[number] = task
            self._ready.append(task)
        self._graph.rounds.in_flight = max(self._graph.rounds.in_flight, len(self._flying))

    def _step(self, task: Task) -> None:
        """Have a task go on, to where it waits or ends."""
        try:
            request = task.step(self._graph)
        except StopIteration as end:
            self._ended(task, end.value)
            return
        except Exception as raised:
            self._failed(task, raised)
            return
        if request.__class__ is Expression:
            task.asked = request
            self._waiting.append(task)
        elif isinstance(request, Parts):
            self._ready.extend(task.split(request) or [task])
        else:
            try:
                task.asked = asked(request)
                self._waiting.append(task)
            except EdBatchError as refused:
                task.error = refused
                self._ready.append(task)

    def _ended(self, task: Task, value: Any) -> None:
        parent = task.parent
        if parent is None:
            self._leave(task, value)
            return
        parent.answer[task.place] = value
        parent.running -= 1
        if not parent.running:
            self._ready.append(parent)

    def _failed(self, task: Task, error: Exception) -> None:
        """A program raised; what a part raises comes out of what waits for it, and the other parts end."""
        if task.parent is not None:
            task.parent.close_parts()
            task.parent.error = error
            self._ready.append(task.parent)
        elif self._kept:
            self._leave(task, error)
        else:
            error.add_note(f"in program {task.sample} of `run`")
            raise error

    def _leave(self, task: Task, result: Any) -> None:
        del self._flying[task.sample]
        self.results[task.sample] = result
        self._bar.update()
        if self._limit is not None:
            self._begin()

    def _answer(self) -> None:
        """Compute what all wait for, at once."""
        waiting = self._ready = [task for task in self._waiting if not task.closed]
        self._waiting = []
        wanted: list[Expression] = []
        several = False
        for task in waiting:
            if task.asked.__class__ is Expression:
                wanted.append(task.asked)
            else:
                several = True
                wanted.extend(task.asked)
        found = _values(wanted)
        if not several:
            for task, value in zip(waiting, found, strict=True):
                task.answer = value
            return
        rest = iter(found)
        for task in waiting:
            task.answer = next(rest) if task.asked.__class__ is Expression else list(islice(rest, len(task.asked)))


def _values(expressions: list[Expression]) -> list[Any]:
    """The values of expressions, of one graph in nearly all cases."""
    owners = {expression.graph for expression in expressions}
    if len(owners) < 2:
        return forward(expressions)
    found = {graph: iter(forward([x for x in expressions if x.graph is graph])) for graph in owners}
    return [next(found[expression.graph]) for expression in expressions]
