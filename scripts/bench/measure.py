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
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def ms(self, per: int = 1) -> float:
        """The median of the thread's milliseconds, of one of `per` in a run."""
        return 1e3 * statistics.median(self.cpu) / per

    def medians(self) -> dict[str, float]:
        """Of the figures."""
        return {name: statistics.median(values) for name, values in self.figures.items()}


def interleaved(
    functions: Mapping[str, Callable[..., Any]],
    rounds: int,
    given: Callable[[int], Any] | None = None,
    warm_ups: int = 1,
    limit: float = math.inf,
) -> dict[str, Runs]:
    """Time functions that take turns, so that noise hits all alike, each after a collection of garbage.

    Garbage is looked for among what the runs make: among all that is compiled and imported it takes longer than most.

    Args:
        functions: by name. What one returns as a dictionary are figures of its own.
        rounds: runs of each.
        given: makes the argument of a function from the number of the round, before the clock runs; None: none.
        warm_ups: rounds before these, which are not timed.
        limit: seconds after which no round begins, but two there are.
    """
    runs = {name: Runs() for name in functions}
    gc.collect()
    gc.freeze()
    try:
        begin = perf_counter()
        for number in range(warm_ups + rounds):
            if number == warm_ups:
                begin = perf_counter()
            if number >= warm_ups + 2 and perf_counter() - begin > limit:
                break
            for name, function in functions.items():
                arguments = () if given is None else (given(number),)
                _run(function, arguments, runs[name] if number >= warm_ups else Runs())
    finally:
        gc.unfreeze()
    return runs


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
