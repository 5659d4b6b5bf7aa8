"""Runs parts of a check in a process of their own: after one that fails, dies or hangs the next part gets another."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from typing import Any

TO_START = 120  # seconds that imports may take


class Failed(Exception):
    """A part failed; says why."""


class Worker:
    """A process that begins anew after a part that failed.

    Parts are functions of modules; what they are given, and return, has to be something that `pickle` knows.
    """

    def __init__(self) -> None:
        self._process: Any = None

    def run(self, seconds: float, part: Callable[..., Any], *given: Any) -> Any:
        """What `part(*given)` returns.

        Raises:
            Failed: it raised an error, its process died, or it took longer than `seconds`.
        """
        try:
            if self._process is None:
                context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
                self._connection, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,))
                self._process.start()
                theirs.close()
                self._answer(TO_START)
            self._connection.send((part, given))
            return self._answer(seconds)
        except (EOFError, ConnectionError) as error:
            self._process.join(10)
            code = self._process.exitcode
            self.end()
            death = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
            raise Failed(f"its process died ({death})") from error
        except Failed:
            self.end()
            raise

    def end(self) -> None:
        """Kill the process: the next part starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _answer(self, seconds: float) -> Any:
        if not self._connection.poll(seconds):
            raise Failed(f"took longer than {seconds:.0f} s")
        right, found = self._connection.recv()
        if not right:
            raise Failed(found)
        return found


def _serve(connection: Any) -> None:
    """What the process does."""
    connection.send((True, None))
    while True:
        try:
            part, given = connection.recv()
        except EOFError:  # nobody asks any more
            return
        try:
            connection.send((True, part(*given)))
        except Exception as error:
            connection.send((False, " ".join(f"{type(error).__name__}: {error}".split())[:300]))
