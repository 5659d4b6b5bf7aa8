"""Time: of stages, and of that how much was spent on compiling."""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import NamedTuple

from edbatch.base.context_stack import leaving


class Stopwatch(threading.local):
    """Adds up the seconds that a thread spends in `with` blocks; those of nested blocks once.

    Attributes:
        seconds: that passed.
        processor_seconds: in which a processor worked for the thread; fewer where it waited, as on a busy machine.
    """

    seconds = processor_seconds = 0.0
    _depth = 0
    _start = _processor_start = 0.0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._start, self._processor_start = perf_counter(), thread_time()
        self._depth += 1

    @leaving
    def __exit__(self, *_: object) -> None:
        now, worked = perf_counter(), thread_time()  # first: an interrupt after a call would have it all done twice
        self._depth -= 1
        if self._depth == 0:
            self.seconds += now - self._start
            self.processor_seconds += worked - self._processor_start


#: Compilation, loading what was compiled before, and loading the compiler.
compiling = Stopwatch()


def working_time() -> float:
    """Return `perf_counter()` without the seconds that this thread has waited for compilation."""
    return perf_counter() - compiling.seconds


def processor_time() -> float:
    """Return the seconds in which a processor has worked for this thread, without compilation."""
    return thread_time() - compiling.processor_seconds


class Passed(NamedTuple):
    """A stage that has passed; `start`, `end`: see `time.perf_counter`."""

    stage: str
    start: float
    end: float


class Clock:
    """Adds the time since the last stop to a stage; what went into compiling meanwhile is a stage of its own.

    Args:
        seconds: of each stage; added to.
        passed: to which stages are appended as they pass, compiling in them included; None: not asked for.
    """

    __slots__ = ("_compiled", "_start", "passed", "seconds")

    def __init__(self, seconds: dict[str, float], passed: list[Passed] | None = None) -> None:
        self.seconds = seconds
        self.passed = passed
        self.restart()

    def restart(self) -> None:
        """Begin a stage; what came since the last stop belongs to none."""
        self._compiled = compiling.seconds
        self._start = perf_counter() - self._compiled

    def stop(self, stage: str) -> None:
        """End a stage, and begin another."""
        compiled, seconds = compiling.seconds, self.seconds
        now = perf_counter() - compiled
        seconds[stage] = seconds.get(stage, 0.0) + now - self._start
        if self.passed is not None:
            self.passed.append(Passed(stage, self._start + self._compiled, now + compiled))
        self._start = now
        if compiled != self._compiled:
            seconds["compilation"] = seconds.get("compilation", 0.0) + compiled - self._compiled
            self._compiled = compiled
