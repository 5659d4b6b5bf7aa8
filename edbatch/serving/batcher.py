"""Continuous batching: requests join a running set between two rounds, and leave it when they are answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Self
from weakref import finalize

from edbatch.base.numbers import checked_integer, is_real
from edbatch.errors import EdBatchError, shown
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.spec import float_dtype
from edbatch.policy.policy import Policy, get_policy
from edbatch.serving.errors import BatcherError, DeadlineError, OverloadError
from edbatch.serving.request import Request
from edbatch.serving.worker import Counters, Worker


class Batcher:
    """Answers requests, each by a program of its own, all that are in flight together.

    A thread of its own runs rounds as `edbatch.run` does. A request begins between two rounds and ends when its program
    returns, however long others take. What a program raises is raised to who asked, and to nobody else. When values
    cannot be computed for all together, as when memory is over, each that was in flight begins again, alone, and what
    is raised then is its own; so a program may be called twice for a sample. Programs run in evaluation,
    `edbatch.options(training=False)`; values that nobody can reach any more are given back. Code that is compiled when
    it is first needed keeps all waiting: run `edbatch warm-up` once, and each kind of request before others come.

    It may be called from any event loop, of several threads too. It begins with the first request, and ends by `close`,
    or with `async with`, or when it is collected. A process that was forked after it began has to make another.

    Args:
        program: called with a sample, in the thread of the batcher; returns a coroutine or generator, as `edbatch.run`
            takes them: it waits for expressions, and for nothing of asyncio's. Fetch what it needs before.
        model: parameters that `reload` loads.
        max_in_flight: requests that run at a time; the others wait.
        max_waiting: requests that may wait; one more is refused.
        deadline: seconds that a request may take, waiting included; None: any time.
        policy: as of `edbatch.Graph`; None: `critical-path`, so that nobody waits while one is learned.
        dtype: as of `edbatch.Graph`.

    Raises:
        EdBatchError: a number is out of range, or there is no such policy.

    Example:
        >>> import asyncio, edbatch as eb
        >>> from edbatch.serving import Batcher
        >>> async def double(x):
        ...     return float(await (eb.scalar(x) * 2))
        >>> async def main():
        ...     async with Batcher(double) as batcher:
        ...         return await asyncio.gather(*[batcher(x) for x in (1, 2, 3)])
        >>> asyncio.run(main())
        [2.0, 4.0, 6.0]
    """

    def __init__(
        self,
        program: Callable[[Any], Any],
        model: ParameterCollection | None = None,
        *,
        max_in_flight: int = 64,
        max_waiting: int = 1024,
        deadline: float | None = None,
        policy: str | os.PathLike[str] | Policy | None = None,
        dtype: Any = "float32",
    ) -> None:
        if not callable(program):
            raise EdBatchError(f"Batcher: expected a function that returns a program, got {shown(program)}")
        if not isinstance(model, ParameterCollection | None):
            raise EdBatchError(f"Batcher: model: expected a ParameterCollection, got {shown(model)}")
        self._deadline = _checked_deadline(deadline)
        self._max_waiting = checked_integer("Batcher", "max_waiting", max_waiting, least=0)
        self._max_in_flight = checked_integer("Batcher", "max_in_flight", max_in_flight)
        self._program, self._model = program, model
        known = get_policy("critical-path" if policy is None else policy)
        self._worker = Worker(self._max_in_flight, known, float_dtype(dtype))
        finalize(self, self._worker.abandon).atexit = False

    @property
    def deadline(self) -> float | None:
        """Seconds that a request may take; None: any time."""
        return self._deadline

    @property
    def counters(self) -> Counters:
        """What it has done so far; a copy."""
        return self._worker.counted()

    def trouble(self, seconds: float) -> str:
        """Why nobody is answered any more: it has ended, or has been in one round for longer than that; or nothing."""
        worker, begun = self._worker, self._worker.begun
        if worker.closed or worker.ended or (worker.thread is not None and not worker.thread.is_alive()):
            return "the batcher has ended"
        stalled = 0.0 if begun is None else monotonic() - begun
        return f"no round has ended for {stalled:.1f} s" if stalled > seconds else ""

    async def __call__(self, sample: Any, deadline: float | None = None, since: float | None = None) -> Any:
        """What the program returns for a sample.

        Who cancels the call, or lets its time run out, ends the program where it waits.

        Args:
            sample: what the program is called with.
            deadline: seconds that it may take; None: the batcher's.
            since: when they began, by the event loop's `time`, where a request took time to come; None: now.

        Raises:
            OverloadError: too many wait.
            DeadlineError: time is over.
            BatcherError: the batcher is closed, or began in the process that this one was forked from; values could not
                be computed; or the program returned what is no value.
            MemoryError: there is none for this request, even alone.
            Exception: what the program raises; what asyncio would take for its own (`SystemExit`) as a RuntimeError.
        """
        seconds = self._deadline if deadline is None else _checked_deadline(deadline)
        if since is not None and not is_real(since):
            raise EdBatchError(f"Batcher: since={shown(since)}; expected a time of the event loop, or None")
        loop = asyncio.get_running_loop()
        request = Request(partial(self._program, sample), loop)
        self._enter(request)
        begun = loop.time() if since is None else since
        time, how = asyncio.timeout_at(None if seconds is None else begun + seconds), "failed"
        try:
            async with time:
                found = await request.future
            how = "answered"
            return found
        except asyncio.CancelledError:
            how = "cancelled"
            raise
        except TimeoutError:
            if not time.expired():  # the program's
                raise
            how = "expired"
            raise DeadlineError(f"not answered in {seconds:g} s; reduce the load, or set a longer deadline") from None
        finally:
            self._worker.finish(request, how)
            del request, time  # they know of what was raised, which holds this frame: a cycle

    async def reload(self, path: str | os.PathLike[str]) -> None:
        """Load a checkpoint: requests in flight end with the parameters that they began with, later ones get the new.

        So later ones wait until those in flight have ended: a deadline says how long that may take. Who cancels this
        before has nothing loaded, and the others go on.

        Raises:
            EdBatchError: there is no model, or the file cannot be loaded; the parameters are then what they were.
        """
        model = self._model
        if model is None:
            raise EdBatchError("reload: this Batcher was made without a model")
        job = Request(partial(model.load, path), asyncio.get_running_loop())
        with self._worker.lock:
            self._check_open()
            self._worker.start()
            self._worker.jobs.append(job)
            self._worker.wake()
        try:
            await job.future
        except asyncio.CancelledError:
            with self._worker.lock, suppress(ValueError):  # unless it has begun
                self._worker.jobs.remove(job)
            raise

    async def close(self) -> None:
        """Answer what has come, refuse what comes, and end the thread; in a forked process, there is nothing to do."""
        worker = self._worker
        with worker.lock:
            worker.closed = worker.closed or "is closed"
            if worker.thread is None or worker.ended or worker.forked:
                return
            ended = Request(lambda: None, asyncio.get_running_loop())
            worker.leaving.append(ended)
            worker.wake()
        await ended.future
        worker.thread.join()  # it is at its last instructions

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _enter(self, request: Request) -> None:
        """Have a request wait."""
        worker = self._worker
        with worker.lock:
            self._check_open()
            counted = worker.counted()
            there, most = counted.in_flight + counted.waiting, self._max_in_flight + self._max_waiting
            if there >= most:
                worker.counters.refused += 1
                raise OverloadError(
                    f"{there} requests wait or are in flight ({counted.in_flight}), the most that max_in_flight="
                    f"{self._max_in_flight} and max_waiting={self._max_waiting} allow: try again later"
                )
            worker.start()
            worker.waiting.append(request)
            worker.wake()

    def _check_open(self) -> None:
        if self._worker.forked:
            raise BatcherError("this Batcher began in the parent process; make it, or call it first, after the fork")
        if self._worker.closed:
            raise BatcherError(f"this Batcher {self._worker.closed}")


def _checked_deadline(seconds: Any) -> float | None:
    if seconds is not None and (not is_real(seconds) or not 0 < seconds < float("inf")):
        raise EdBatchError(f"Batcher: deadline={shown(seconds)}; expected seconds above 0, or None")
    return None if seconds is None else float(seconds)
