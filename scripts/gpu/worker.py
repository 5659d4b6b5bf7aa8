"""Runs parts of a check in a process of their own: after one that fails, dies or hangs the next part gets another."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from edbatch.experiments.measure import message

TO_START = 120  # seconds that imports may take


class Failed(Exception):
    """A part failed; says why."""


class Runner(Protocol):
    """Runs parts, one after the other."""

    def run(self, seconds: float, part: Callable[..., Any], *given: Any) -> Any:
        """What `part(state, *given)` returns.

        Raises:
            Failed: it raised an error, its process died, or it took longer than `seconds`.
        """

    def renew(self) -> None:
        """Forget what earlier parts may have broken."""


class Here:
    """Runs them in this process, without a limit of time.

    Args:
        end: not used; see `Elsewhere`.
        make: makes the state, what every part gets first.
    """

    def __init__(self, end: float, make: Callable[..., Any], *given: Any) -> None:
        self._state = make(*given)

    def run(self, seconds: float, part: Callable[..., Any], *given: Any) -> Any:
        """See `Runner`."""
        try:
            return part(self._state, *given)
        except Exception as error:
            raise Failed(message(error)) from error

    def renew(self) -> None:
        """Nothing is."""


class Elsewhere:
    """Runs them in a process of its own, which begins anew after a part that failed.

    Args:
        end: when `perf_counter` shows this, whatever runs is ended.
        make: as of `Here`; like parts, what it is given, and what parts return, it has to be something that `pickle`
            knows.
    """

    def __init__(self, end: float, make: Callable[..., Any], *given: Any) -> None:
        self._end, self._make, self._given = end, make, given
        self._process: Any = None

    def run(self, seconds: float, part: Callable[..., Any], *given: Any) -> Any:
        """See `Runner`."""
        if self._process is None:
            self._start()
        try:
            return self._answer(seconds, (part, given))
        except Failed:
            self.renew()
            raise

    def renew(self) -> None:
        """Kill the process: the next part starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._make, self._given))
        self._process.start()
        theirs.close()
        try:
            self._answer(TO_START)
        except Failed as error:
            self.renew()
            raise Failed(f"no process to run it in: {error}") from error

    def _answer(self, seconds: float, asked: Any = None) -> Any:
        try:
            if asked is not None:
                self._connection.send(asked)
            seconds = max(0.0, min(seconds, self._end - perf_counter()))
            if not self._connection.poll(seconds):
                raise Failed(f"took longer than {seconds:.0f} s")
            right, found = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join(10)
            raise Failed(f"its process died ({_death(self._process.exitcode)})") from error
        if not right:
            raise Failed(found)
        return found


def _serve(connection: Any, make: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """What the process does."""
    try:
        state = make(*given)
    except Exception as error:
        connection.send((False, message(error)))
        return
    connection.send((True, None))
    while True:
        try:
            part, given = connection.recv()
        except EOFError:  # nobody asks any more
            return
        try:
            connection.send((True, part(state, *given)))
        except Exception as error:
            connection.send((False, message(error)))


def _death(code: int | None) -> str:
    return f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
