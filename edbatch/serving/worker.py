"""The thread in which requests are answered: round after round, with those that have come meanwhile."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from time import monotonic
from typing import Any
from weakref import WeakSet

import numpy as np

from edbatch.errors import shown
from edbatch.graph.expression import Expression
from edbatch.graph.options import options
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.runtime.programs.requests import is_program
from edbatch.runtime.programs.rounds import Rounds
from edbatch.serving.errors import BatcherError
from edbatch.serving.request import Request, for_asyncio


@dataclass
class Counters:
    """What a `Batcher` has done since it was made: requests that ended so, those there are now, what was run."""

    answered: int = 0
    failed: int = 0
    refused: int = 0
    expired: int = 0
    cancelled: int = 0
    waiting: int = 0
    in_flight: int = 0
    rounds: int = 0
    batches: int = 0


class Worker:
    """Holds what waits and what is in flight.

    All that other threads see is changed under `lock`. The thread must not keep who uses it from being collected: only
    requests know the program, which may well know its batcher. So nothing waits when a batcher is collected.
    """

    def __init__(self, max_in_flight: int, policy: Policy, dtype: np.dtype) -> None:
        self.lock = RLock()  # its thread may take it again: the garbage collector may end a request anywhere
        self.waiting: deque[Request] = deque()
        self.jobs: deque[Request] = deque()  # what is done while nothing is in flight, before others begin
        self.leaving: list[Request] = []  # who waits for the thread to end
        self.thread: Thread | None = None
        self.closed = ""  # why it ends when all is answered
        self.ended = self.forked = False  # the thread, and left behind in the process that this one was forked from
        self.begun: float | None = None  # when the last round began, of `monotonic`, if any request is in flight
        self.counters = Counters()
        self._come: SimpleQueue[None] = SimpleQueue()
        self._max_in_flight, self._policy, self._dtype = max_in_flight, policy, dtype
        self._flying: dict[int, Request] = {}
        self._left: list[Request] = []
        self._settled: list[tuple[Request, Any, Exception | None]] = []  # what is told after the round
        self._next = 0
        _workers.add(self)

    def start(self) -> None:
        """Begin, unless it has; under the lock."""
        if self.thread is None:
            thread = Thread(target=self._run, name="edbatch.Batcher", daemon=True)
            thread.start()  # or raises
            self.thread = thread

    def wake(self) -> None:
        """There is something to do; takes no lock."""
        self._come.put(None)

    def abandon(self) -> None:
        """Nobody can ask any more; called by the garbage collector wherever it comes, so it takes no lock."""
        self.closed = "is closed"
        self.wake()

    def counted(self) -> Counters:
        """The counters as they are now."""
        with self.lock:
            return replace(self.counters, waiting=len(self.waiting), in_flight=len(self._flying))

    def finish(self, request: Request, how: str) -> None:
        """Count a request by how it ended, and let nobody wait for it; called in the thread of its event loop."""
        with self.lock:
            setattr(self.counters, how, getattr(self.counters, how) + 1)
            if request.number < 0:
                self.waiting.remove(request)
            elif self._flying.pop(request.number, None) is not None:
                self._left.append(request)

    def _run(self) -> None:
        """Answer requests until it is closed; if that fails, those that are left fail, and nobody waits in vain."""
        try:
            with options(training=False):
                while self._run_in_a_graph():
                    pass
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            with self.lock:
                self.ended = True
                self._settled += [(request, None, None) for request in self.leaving]
            self._tell()

    def _run_in_a_graph(self) -> bool:
        """Answer requests until it is closed, or computing fails; whether there may be more to do."""
        with Graph(self._policy, self._dtype) as graph:
            counts = graph.rounds
            rounds = Rounds(graph, self._ended, forgets=True, catches=BaseException)
            try:
                while self._admit(rounds):
                    before = counts.rounds, counts.batches
                    rounds.round()
                    with self.lock:
                        self.counters.rounds += counts.rounds - before[0]
                        self.counters.batches += counts.batches - before[1]
                    self._tell()
            except Exception as error:  # of what was computed for all of them together
                self._end_left(rounds)
                for number, request in sorted(self._flying.items(), reverse=True):
                    _end(rounds, request)
                    self._ended(number, None, _of_all(error), together=True)
                self._tell()
                return True
        return False

    def _admit(self, rounds: Rounds) -> bool:
        """Wait until there is something to do, and begin what has come; whether anything is in flight."""
        while True:
            begun: list[Request] = []
            self.begun = monotonic()
            with suppress(Empty):  # all calls until now are about what is there: they need not wake it again
                while True:
                    self._come.get_nowait()
            self._end_left(rounds)
            with self.lock:
                while len(rounds) + len(begun) < self._room():
                    begun.append(request := self.waiting.popleft())
                    request.number, self._next = self._next, self._next + 1
                    self._flying[request.number] = request
                idle = not begun and not rounds
                job = self.jobs.popleft() if idle and self.jobs else None
                if idle:
                    self.begun = None
                if idle and job is None and self.closed:
                    return False
            if job is not None:
                try:
                    self._settled.append((job, job.call(), None))
                except BaseException as error:
                    self._settled.append((job, None, for_asyncio(error)))
                self._tell()
            elif idle:
                self._come.get()
            while begun:
                self._begin(rounds, begun.pop())  # which this frame, when it waits, no longer holds
            if rounds:
                return True

    def _room(self) -> int:
        """How many may be in flight, the one that waits longest among them."""
        first = next(iter(self._flying.values()), None)
        if not self.waiting or (first is not None and first.alone):
            return 0
        return 1 if self.waiting[0].alone else 0 if self.jobs else self._max_in_flight

    def _end_left(self, rounds: Rounds) -> None:
        """End what nobody waits for any more."""
        with self.lock:
            left, self._left = self._left, []
        for request in left:
            _end(rounds, request)

    def _begin(self, rounds: Rounds, request: Request) -> None:
        try:
            program = request.call()
            if not is_program(program):
                raise BatcherError(f"Batcher: expected a function that returns a program, it returned {shown(program)}")
        except BaseException as error:
            self._ended(request.number, None, error)
            self._tell()
        else:
            rounds.begin(request.number, program)

    def _fail(self, error: BaseException) -> None:
        """Have all that is there fail."""
        with self.lock:
            self.closed = f"has ended: its thread failed with {type(error).__name__}: {error}"
            failed = BatcherError(f"this Batcher {self.closed}")
            self._settled += [(one, None, failed) for one in (*self._flying.values(), *self.waiting, *self.jobs)]

    def _ended(self, number: int, result: Any, error: BaseException | None, together: bool = False) -> None:
        """Have a request end; but if all went wrong `together`, which may be another's fault, begin again, alone."""
        if isinstance(result, Expression):
            error = BatcherError("Batcher: expected the program to return values, got an expression; return `await x`")
        with self.lock:
            request = self._flying.pop(number, None)
            if request is not None and not request.alone and (together or isinstance(error, MemoryError)):
                request.alone, request.number = True, -1
                self.waiting.appendleft(request)
                return
        if request is not None:  # otherwise, whoever waited has left
            self._settled.append((request, result, None if error is None else for_asyncio(error)))

    def _tell(self) -> None:
        settled, self._settled = self._settled, []
        for request, result, error in settled:
            request.tell(result, error)


_workers: WeakSet[Worker] = WeakSet()  # all that are there, for a process that is forked


def _leave_threads_behind() -> None:
    """In a forked process there is none of the threads: a lock that one held would be held for ever."""
    for worker in _workers:
        worker.forked, worker.lock = worker.thread is not None and not worker.ended, RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_threads_behind)


def _of_all(error: Exception) -> Exception:
    """Describe, for the caller, what went wrong as values were computed."""
    if isinstance(error, MemoryError):
        return error
    told = BatcherError(f"values could not be computed: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told


def _end(rounds: Rounds, request: Request) -> None:
    """End a program that nobody waits for; what it raises then is said by the event loop of who asked."""
    try:
        rounds.end(request.number)
    except BaseException as error:
        context = {"message": "a program that was ended raised an exception", "exception": for_asyncio(error)}
        with suppress(RuntimeError):  # it is closed
            request.loop.call_soon_threadsafe(request.loop.call_exception_handler, context)
