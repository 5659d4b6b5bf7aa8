"""How everything is timed: functions that take turns, and the medians of their runs."""

from __future__ import annotations

import gc
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import Any

STAGES = ("construction", "lowering", "scheduling", "planning", "execution")  # of a mini-batch, in `graph.report()`


@dataclass
class Runs:
    """The timed runs of one function.

    Attributes:
        wall: seconds of each, by the clock.
        cpu: seconds that this thread computed in each; where it is less than `wall`, the machine was busy.
        figures: by name, what the function said of each run itself.
        error: what ended it.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    error: str | None = None

    @property
    def seconds(self) -> float:
        """The median by the clock."""
        return statistics.median(self.wall)

    def ms(self, per: int = 1, name: str = "ms") -> dict[str, float]:
        """Columns of a table: medians in milliseconds, by the clock and of the thread; of one of `per` in a run."""
        return {name: 1e3 * self.seconds / per, f"CPU {name}": 1e3 * statistics.median(self.cpu) / per}

    def medians(self) -> dict[str, float]:
        """Of the figures."""
        return {name: statistics.median(values) for name, values in self.figures.items()}


def interleaved(
    functions: Mapping[str, Callable[..., Any]],
    rounds: int,
    given: Callable[[int], Any] | None = None,
    warm_ups: int = 1,
    limit: float = math.inf,
    go_on: bool = False,
) -> dict[str, Runs]:
    """Time functions that take turns, so that noise hits all alike, each after a collection of garbage.

    Args:
        functions: by name. What one returns as a dictionary are figures of its own.
        rounds: runs of each.
        given: makes the argument of a function from the number of the round, before the clock runs; None: none.
        warm_ups: rounds before these, which are not timed.
        limit: seconds after which no round begins, but two there are.
        go_on: whether the others go on where one raises an error, which it has for a result then.
    """
    runs = {name: Runs() for name in functions}
    begin = perf_counter()
    for number in range(warm_ups + rounds):
        if number == warm_ups:
            begin = perf_counter()
        if number >= warm_ups + 2 and perf_counter() - begin > limit:
            break
        for name, function in functions.items():
            if runs[name].error is not None:
                continue
            try:
                arguments = () if given is None else (given(number),)
                _run(function, arguments, runs[name] if number >= warm_ups else Runs())
            except Exception as error:
                if not go_on:
                    raise
                runs[name].error = message(error)  # and not the error, which keeps what its frames hold
    return runs


def message(error: Exception) -> str:
    """Its kind and its first lines."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _run(function: Callable[..., Any], arguments: tuple[Any, ...], runs: Runs) -> None:
    gc.collect()
    start, computed = perf_counter(), thread_time()
    found = function(*arguments)
    found = found if isinstance(found, dict) else {}  # to free what it returned is a part of the work
    cpu, wall = thread_time() - computed, perf_counter() - start
    runs.wall.append(wall)
    runs.cpu.append(cpu)
    for key, value in found.items():
        runs.figures[key].append(value)
