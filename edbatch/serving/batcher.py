"""Continuous batching: requests join a running set between two rounds, and leave it when they are answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from threading import Thread
from typing import Any, Self

from edbatch.base.numbers import check_integer, is_real
from edbatch.errors import EdBatchError, shown
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.spec import float_dtype
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy
from edbatch.serving.worker import Counters, Job, Request, Settings, Worker


class OverloadError(EdBatchError):
    """So many requests wait that one more is refused: try again later."""


class DeadlineError(EdBatchError):
    """A request was not answered in time; what it held is given back."""


class Batcher:
    """Answers requests, each by a program of its own, all that are in flight together.

    A thread of its own runs rounds as `edbatch.run` does. A request begins between two rounds and ends when its program
    returns, however long others take. What a program raises is raised to who asked, and to nobody else. Programs run in
    evaluation, `edbatch.options(training=False)`; values that nobody can reach any more are given back.

    It may be called from any event loop, of several threads too. It begins with the first request, and is closed by
    `close`, or at the end of `async with`.

    Args:
        program: called with a sample, in the thread of the batcher; returns a coroutine or generator, as `edbatch.run`
            takes them.
        model: parameters that `reload` loads.
        max_in_flight: requests that run at a time; the others wait.
        max_waiting: requests that may wait; one more is refused.
        deadline: seconds that a request may take, waiting included; None: any time.
        policy: as of `edbatch.Graph`; None: `sufficient`, so that nobody waits while one is learned.
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
        check_integer("Batcher", "max_in_flight", max_in_flight)
        check_integer("Batcher", "max_waiting", max_waiting, least=0)
        self._deadline = _checked_deadline(deadline)
        self._max_waiting = max_waiting
        self._max_in_flight = max_in_flight
        self._model = model
        known = get_policy("sufficient" if policy is None else policy)
        self._worker = Worker(Settings(program, max_in_flight, known, float_dtype(dtype)))
        self._thread: Thread | None = None

    @property
    def counters(self) -> Counters:
        """What it has done so far; a copy."""
        return self._worker.counted()

    async def __call__(self, sample: Any, deadline: float | None = None) -> Any:
        """What the program returns for a sample.

        Who cancels the call, or lets its time run out, ends the program where it waits.

        Args:
            sample: what the program is called with.
            deadline: seconds that it may take; None: the batcher's.

        Raises:
            OverloadError: too many wait.
            DeadlineError: time is over.
            EdBatchError: the batcher is closed.
            Exception: what the program raises; what asyncio would take for its own (`SystemExit`) as a RuntimeError.
        """
        seconds = self._deadline if deadline is None else _checked_deadline(deadline)
        request = Request(sample, asyncio.get_running_loop())
        self._enter(request)
        time, how = asyncio.timeout(seconds), "failed"
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
            raise DeadlineError(f"not answered in {seconds:g} s; expected less load, or a longer deadline") from None
        finally:
            self._worker.finish(request, how)
            del request, time  # they know of what was raised, which holds this frame: a cycle

    async def reload(self, path: str | os.PathLike[str]) -> None:
        """Load a checkpoint: requests in flight end with the parameters that they began with, later ones get the new.

        Raises:
            EdBatchError: there is no model, or the file cannot be loaded; the parameters are then what they were.
        """
        model = self._model
        if model is None:
            raise EdBatchError("reload: this Batcher was made without a model")
        job = Job(lambda: model.load(path), Request(None, asyncio.get_running_loop()))
        with self._worker.changed:
            self._check_open()
            self._worker.jobs.append(job)
            self._start()
        await job.request.future

    async def close(self) -> None:
        """Answer what has come, refuse what comes, and end the thread."""
        with self._worker.changed:
            self._worker.closed = True
            self._worker.changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _enter(self, request: Request) -> None:
        """Have a request wait."""
        worker = self._worker
        with worker.changed:
            self._check_open()
            counted = worker.counted()
            if counted.waiting - max(0, self._max_in_flight - counted.in_flight) >= self._max_waiting:
                worker.counters.refused += 1
                raise OverloadError(
                    f"{counted.in_flight} requests are in flight and {counted.waiting} wait; expected at most "
                    f"{self._max_in_flight} and {self._max_waiting}: try again later"
                )
            worker.waiting.append(request)
            self._start()

    def _check_open(self) -> None:
        if self._worker.closed:
            raise EdBatchError("this Batcher is closed")

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._worker.run, name="edbatch.Batcher", daemon=True)
            self._thread.start()
        self._worker.changed.notify()


def _checked_deadline(seconds: Any) -> float | None:
    if seconds is not None and (not is_real(seconds) or not 0 < seconds < float("inf")):
        raise EdBatchError(f"Batcher: deadline={shown(seconds)}; expected seconds above 0, or None")
    return None if seconds is None else float(seconds)
