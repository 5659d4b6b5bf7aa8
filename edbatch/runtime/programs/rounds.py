"""Programs in flight: steps of all that can go on, then what they wait for, computed at once, and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from itertools import islice
from time import perf_counter
from typing import Any, Self

from edbatch.base.context_stack import contextmanager, leaving
from edbatch.errors import EdBatchError
from edbatch.graph.columns import Columns
from edbatch.graph.draws import stream
from edbatch.graph.expression import Expression, driven
from edbatch.runtime.graph import Graph, forward
from edbatch.runtime.programs.forgetting import Forgetting
from edbatch.runtime.programs.requests import Parts, Program, asked
from edbatch.runtime.programs.task import Task


class Rounds:
    """Programs that run together; others may join between two rounds, and leave when they end.

    Args:
        ended: called with a program's number, what it returned, and what it raised, if it did; may begin others. What
            it raises ends the round.
        forgets: whether the graph is nobody else's: values that cannot be reached are given back.
        catches: what a program may raise that ends it alone; anything else ends the round.
    """

    def __init__(
        self, graph: Graph, ended: Callable[[int, Any, Any], None], forgets: bool = False,
        catches: type[BaseException] = Exception,
    ) -> None:  # fmt: skip
        self._graph = graph
        self._ended = ended
        self._catches = catches
        self._forgetting = Forgetting(graph) if forgets else None
        graph.in_rounds = True
        self._stream = stream(graph.stream, graph.programs)
        graph.programs += 1
        self._context = copy_context()
        self._context.run(driven.set, True)
        self._flying: dict[int, Task] = {}
        self._ready: list[Task] = []
        self._waiting: list[Task] = []

    def __len__(self) -> int:
        """How many programs are in flight."""
        return len(self._flying)

    def begin(self, number: int, program: Program) -> None:
        """Have a program join; what it draws follows from its number."""
        task = Task(program, self._context.copy(), stream(self._stream, number), number)
        self._flying[number] = task
        self._ready.append(task)

    def end(self, number: int) -> None:
        """Close a program, and what it waits for, where it is, unless it has ended."""
        task = self._flying.get(number)
        if task is not None:
            try:
                task.close()
            finally:
                self._flying.pop(number, None)

    def __enter__(self) -> Self:
        return self

    @leaving
    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Close all; what has ended the block is raised, not what comes of closing."""
        with _kept(error):
            self.close()

    def close(self) -> None:
        """Close all, whatever one of them raises; nobody is called any more.

        Who is called may well hold these rounds: the graph, and its memory, would be there until the garbage collector
        comes, and the next graph would get memory that no processor has seen.
        """
        with ExitStack() as ending:
            ending.callback(vars(self).pop, "_ended", None)
            for number in list(self._flying):
                ending.callback(self.end, number)

    def round(self, *reachable: Any) -> bool:
        """Have all go on to where they wait or end, and compute what they wait for.

        Args:
            reachable: objects whose expressions are not given back, beside those of programs in flight.

        Returns:
            Whether any program is in flight.
        """
        begun, graph = perf_counter(), self._graph
        drawn = graph.stream, graph.next_draw
        try:
            for task in self._ready:  # which grows meanwhile
                if not task.closed:
                    self._step(task)
        finally:
            graph.stream, graph.next_draw = drawn
        self._ready = []
        if self._waiting:
            counts = graph.rounds
            counts.rounds += 1
            counts.waited += len(self._waiting)
            counts.in_flight = max(counts.in_flight, len(self._flying))
            before = graph.batches
            self._answer()
            counts.batches += graph.batches - before
            if self._forgetting is not None and self._forgetting.due():
                self._graph = self._forgetting.move((self._flying, reachable))
            counts.seconds += perf_counter() - begun
        return bool(self._flying)

    def finish(self, *reachable: Any) -> None:
        """Run rounds until no program is in flight; see `round`."""
        while self.round(*reachable):
            pass

    def _step(self, task: Task) -> None:
        """Have a task go on, to where it waits or ends."""
        try:
            request = task.step(self._graph)
        except StopIteration as end:
            self._return(task, end.value)
            return
        except self._catches as raised:
            self._raise(task, raised)
            return
        if isinstance(request, Expression):
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

    def _return(self, task: Task, value: Any) -> None:
        parent = task.parent
        if parent is None:
            del self._flying[task.sample]
            self._ended(task.sample, value, None)
            return
        parent.answer[task.place] = value
        parent.running -= 1
        if not parent.running:
            parent.forget_parts()
            self._ready.append(parent)

    def _raise(self, task: Task, error: BaseException) -> None:
        """What a program raises ends it; what a part raises comes out of what waits for it, and the other parts end."""
        if task.parent is None:
            del self._flying[task.sample]
            try:
                self._ended(task.sample, None, error)
            finally:  # what it raises again holds this frame, which would hold it, and both the graph
                del error
            return
        task.parent.error = error
        self._ready.append(task.parent)
        with _kept(error):
            task.parent.close_parts()

    def _answer(self) -> None:
        """Compute what all wait for, at once."""
        waiting = self._ready = [task for task in self._waiting if not task.closed]
        self._waiting = []
        wanted = _wanted(waiting)
        others = {_graph_of(expression) for expression in wanted} - {self._graph}
        if others:
            for graph in others:
                _read(graph, waiting)
            wanted = _wanted(waiting)
        found = iter(forward(wanted) if not others else [expression.value() for expression in wanted])
        for task in waiting:
            asked = task.asked
            task.answer = list(islice(found, len(asked))) if isinstance(asked, list) else next(found)


def _graph_of(expression: Expression) -> Columns:
    """The graph that runs: of an array, its base."""
    return expression.graph.base or expression.graph


def _wanted(waiting: list[Task]) -> list[Expression]:
    """What tasks wait for, one after the other."""
    wanted: list[Expression] = []
    for task in waiting:
        if isinstance(task.asked, list):
            wanted.extend(task.asked)
        else:
            wanted.append(task.asked)
    return wanted


def _read(graph: Columns, waiting: list[Task]) -> None:
    """Compute what is asked of another graph than that of the rounds; if that fails, it is raised to who asked."""
    asking = [task for task in waiting if any(_graph_of(expression) is graph for expression in _wanted([task]))]
    try:
        forward([expression for expression in _wanted(asking) if _graph_of(expression) is graph])
    except Exception as error:
        for task in asking:
            task.asked, task.error = [], error


@contextmanager
def _kept(error: BaseException | None) -> Iterator[None]:
    """In its block programs are closed because of an error: it stays that, with a note of what closing them raised."""
    try:
        yield
    except Exception as another:
        if error is None:
            raise
        error.add_note(f"as other programs were closed, there was {type(another).__name__}: {another}")
    finally:
        del error
