"""The thread in which requests are answered: round after round, with those that have come meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Condition
from typing import Any, NamedTuple

from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression
from edbatch.graph.options import options
from edbatch.runtime.graph import Graph
from edbatch.runtime.programs.requests import is_program
from edbatch.runtime.programs.rounds import Rounds


@dataclass
class Counters:
    """What a `Batcher` has done since it was made.

    Attributes:
        answered, failed, refused, expired, cancelled: requests that have ended so.
        waiting, in_flight: requests that have not begun, and that have; now.
        rounds, batches: that were run.
    """

    answered: int = 0
    failed: int = 0
    refused: int = 0
    expired: int = 0
    cancelled: int = 0
    waiting: int = 0
    in_flight: int = 0
    rounds: int = 0
    batches: int = 0


class Settings(NamedTuple):
    """What a worker does not change; see `Batcher`."""

    program: Callable[[Any], Any]
    max_in_flight: int
    policy: Any
    dtype: Any


class Request:
    """A sample, and who waits for what its program returns."""

    def __init__(self, sample: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.sample = sample
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.number = -1  # once it is in flight

    def settle(self, result: Any, error: Exception | None) -> None:
        """Tell who waits; in the thread of its event loop."""
        if self.future.done():  # nobody waits any more
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Job(NamedTuple):
    """What is done while nothing is in flight, and who waits for it."""

    work: Callable[[], Any]
    request: Request


class Worker:
    """Holds what waits and what is in flight.

    All that other threads see is changed under `changed`, which is notified when there is something to do.

    Attributes:
        waiting: requests that have not begun, in order.
        jobs: what has to be done before others begin.
        closed: whether it ends when all is answered.
        counters: what it has done.
    """

    def __init__(self, settings: Settings) -> None:
        self.changed = Condition()
        self.waiting: deque[Request] = deque()
        self.jobs: deque[Job] = deque()
        self.closed = False
        self.counters = Counters()
        self._settings = settings
        self._flying: dict[int, Request] = {}
        self._left: list[Request] = []
        self._settled: list[tuple[Request, Any, Exception | None]] = []
        self._next = 0

    def counted(self) -> Counters:
        """The counters as they are now."""
        with self.changed:
            return replace(self.counters, waiting=len(self.waiting), in_flight=len(self._flying))

    def finish(self, request: Request, how: str) -> None:
        """Nobody waits for a request any more, be it answered or not; called in the thread of its event loop.

        Args:
            how: name of the counter.
        """
        with self.changed:
            setattr(self.counters, how, getattr(self.counters, how) + 1)
            if request.number < 0:
                self.waiting.remove(request)
            elif self._flying.pop(request.number, None) is not None:
                self._left.append(request)

    def run(self) -> None:
        """Answer requests until it is closed."""
        with options(training=False):
            while self._run_in_a_graph():
                pass

    def _run_in_a_graph(self) -> bool:
        """Answer requests until it is closed, or computing fails; whether there may be more to do."""
        with Graph(self._settings.policy, self._settings.dtype) as graph:
            counts = graph.rounds
            rounds = Rounds(graph, self._ended, forgets=True, catches=BaseException)
            try:
                while self._admit(rounds):
                    before = counts.count, counts.batches
                    rounds.round()
                    with self.changed:
                        self.counters.rounds += counts.count - before[0]
                        self.counters.batches += counts.batches - before[1]
                    self._tell()
            except Exception as error:  # of what was computed for all of them together
                self._end_left(rounds)
                for number, request in list(self._flying.items()):
                    self._ended(number, None, error)
                    _end(rounds, request)
                self._tell()
                return True
        return False

    def _admit(self, rounds: Rounds) -> bool:
        """Wait until there is something to do, and begin what has come; whether anything is in flight."""
        while True:
            begun: list[Request] = []
            self._end_left(rounds)
            with self.changed:
                if self.jobs and not rounds:
                    job = self.jobs.popleft()
                else:
                    job = None
                    while self.waiting and not self.jobs and len(rounds) + len(begun) < self._settings.max_in_flight:
                        begun.append(self._fly(self.waiting.popleft()))
                    if not begun and not rounds:
                        if self.closed and not self.jobs:
                            return False
                        self.changed.wait()
            if job is not None:
                self._do(job)
            while begun:
                self._begin(rounds, begun.pop())  # which this frame, when it waits, no longer holds
            if rounds:
                return True

    def _end_left(self, rounds: Rounds) -> None:
        """End what nobody waits for any more, and give back what it held."""
        with self.changed:
            left, self._left = self._left, []
        for request in left:
            _end(rounds, request)

    def _fly(self, request: Request) -> Request:
        request.number, self._next = self._next, self._next + 1
        self._flying[request.number] = request
        return request

    def _begin(self, rounds: Rounds, request: Request) -> None:
        try:
            program = self._settings.program(request.sample)
            if not is_program(program):
                raise EdBatchError(f"Batcher: expected a function that returns a program, it returned {shown(program)}")
        except BaseException as error:
            self._ended(request.number, None, error)
            self._tell()
        else:
            rounds.begin(request.number, program)

    def _do(self, job: Job) -> None:
        try:
            found, error = job.work(), None
        except BaseException as raised:
            found, error = None, _for_asyncio(raised)
        self._settled.append((job.request, found, error))
        self._tell()

    def _ended(self, number: int, result: Any, error: BaseException | None) -> None:
        if isinstance(result, Expression):
            error = EdBatchError("Batcher: expected the program to return values, got an expression; return `await x`")
        with self.changed:
            request = self._flying.pop(number, None)
        if request is not None:  # otherwise, whoever waited has left
            self._settled.append((request, result, None if error is None else _for_asyncio(error)))

    def _tell(self) -> None:
        """Tell who waits for what has ended, each event loop once."""
        settled, self._settled = self._settled, []
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Request, Any, Exception | None]]] = {}
        for one in settled:
            by_loop.setdefault(one[0].loop, []).append(one)
        for loop, of_loop in by_loop.items():
            with suppress(RuntimeError):  # it is closed: nobody waits
                loop.call_soon_threadsafe(_settle, of_loop)


def _for_asyncio(error: BaseException) -> Exception:
    """What an event loop would take for its own end, or that of a task, as an error like others."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    raised = RuntimeError(f"the program raised {type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised


def _end(rounds: Rounds, request: Request) -> None:
    """End a program that nobody waits for; what it raises then is said by the event loop of who asked."""
    try:
        rounds.end(request.number)
    except BaseException as error:
        context = {"message": "a program that was ended raised an exception", "exception": _for_asyncio(error)}
        with suppress(RuntimeError):  # it is closed
            request.loop.call_soon_threadsafe(request.loop.call_exception_handler, context)


def _settle(settled: list[tuple[Request, Any, Exception | None]]) -> None:
    for request, result, error in settled:
        request.settle(result, error)
