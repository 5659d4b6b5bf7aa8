"""What time goes into: moments, and how much of the time up to them was spent on compiling."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import NamedTuple, Self


class Stopwatch(threading.local):
    """Adds up the seconds that a thread spends in `with` blocks; those of nested blocks once."""

    seconds = 0.0
    _depth = 0
    _start = 0.0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._start = perf_counter()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._start


#: Compilation, loading what was compiled before, and loading the compiler.
compiling = Stopwatch()


class Moment(NamedTuple):
    """A point in time.

    Attributes:
        time: see `time.perf_counter`.
        compiling: seconds that this thread had waited for compilation by then.
    """

    time: float
    compiling: float

    @classmethod
    def now(cls) -> Self:
        """This moment."""
        return cls(perf_counter(), compiling.seconds)
