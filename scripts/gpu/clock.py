"""Time on the host and on the device: sides that take turns, mini-batches in a row, and what a profiler sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.autograd import DeviceType

from edbatch.experiments.measure import Runs, interleaved

WARM_UPS = 2  # mini-batches that are not measured


@dataclass(frozen=True)
class Side:
    """One way to run mini-batches.

    Attributes:
        name: what the tables call it.
        prepare: what the host makes of the mini-batch of a number; what it uploads is not waited for.
        run: enqueues it and does not wait.
    """

    name: str
    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]


def waiter(device: str) -> Callable[[], None]:
    """Waits until the device has nothing to do, whoever gave it."""
    return (lambda: None) if device == "cpu" else torch.cuda.synchronize


def measure(
    sides: Sequence[Side], turns: Sequence[int], row: Sequence[int], seconds: float, wait: Callable[[], None]
) -> dict[str, Runs]:
    """Times of all sides on the mini-batches with these numbers; those before `WARM_UPS` warm up.

    The sides take turns, and after `seconds` no new turn begins, but two there are. As many mini-batches of `row` are
    then run without a pause: others, for what comes again may be cheaper. A side that fails has its error for a result.

    Returns:
        By side milliseconds of each turn, as figures:

        - "preparation": of the host, before anything runs.
        - "host": until all is enqueued, preparation included.
        - "prepared": from the end of the preparation until the device is done.
        - "total": until the device is done, preparation included.
        - "in a row": per mini-batch, waiting only after the last, preparation included; one figure.
    """
    numbers = [*range(WARM_UPS), *turns]
    functions = {side.name: partial(_one_turn, side, wait) for side in sides}
    runs = interleaved(functions, len(turns), numbers.__getitem__, WARM_UPS, seconds, go_on=True)
    measured = max(len(of.wall) for of in runs.values())
    going = {side.name: partial(_in_a_row, side, wait, row[:measured]) for side in sides if not runs[side.name].error}
    for name, of in interleaved(going, 1, warm_ups=0, go_on=True).items():
        runs[name].figures |= of.figures
        runs[name].error = of.error
    return runs


def _one_turn(side: Side, wait: Callable[[], None], number: int) -> dict[str, float]:
    wait()
    start = perf_counter()
    prepared = side.prepare(number)
    ready = perf_counter()
    result = side.run(prepared)
    enqueued = perf_counter()
    wait()
    end = perf_counter()
    del result
    spans = {"preparation": ready - start, "host": enqueued - start, "prepared": end - ready, "total": end - start}
    return {name: 1e3 * value for name, value in spans.items()}


def _in_a_row(side: Side, wait: Callable[[], None], numbers: Sequence[int]) -> dict[str, float]:
    wait()
    start = perf_counter()
    for number in numbers:
        side.run(side.prepare(number))
    wait()
    return {"in a row": 1e3 * (perf_counter() - start) / len(numbers)}


class Profile(NamedTuple):
    """What the device did in a run.

    Attributes:
        busy: seconds in which a kernel or a copy ran.
        launches: number of kernels.
        copies: number of copies and fills.
        waits: how often the host waited for the device.
        allocations: calls of CUDA for memory, the device's or pinned; some wait too.
        kernels: seconds by the names of kernels, the longest first.
    """

    busy: float
    launches: int
    copies: int
    waits: int
    allocations: int
    kernels: dict[str, float]


def profile(run: Callable[[], Any]) -> Profile:
    """Of a run on a GPU, whoever launches its kernels."""
    waits = _waits_of_the_profiler()
    found = _summary(_events(run))
    return found._replace(waits=found.waits - waits)


@cache
def _waits_of_the_profiler() -> int:
    """It waits when it ends; the first time it may do so more often."""
    _events(lambda: None)
    return _summary(_events(lambda: None)).waits


def _events(run: Callable[[], Any]) -> list[Any]:
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        result = run()
    del result
    return list(profiler.events() or ())


def _summary(events: Iterable[Any]) -> Profile:
    spans, kernels, copies, launches, waits, allocations = [], {}, 0, 0, 0, 0
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        if event.device_type != DeviceType.CUDA:
            waits += "Synchronize" in event.name or event.name == "cudaMemcpy"
            allocations += event.name.startswith(("cudaMalloc", "cudaFree", "cudaHostAlloc"))
            continue
        spans.append((start, end))
        if event.name.startswith(("Memcpy", "Memset")):
            copies += 1
        else:
            launches += 1
            kernels[event.name] = kernels.get(event.name, 0.0) + 1e-6 * (end - start)
    busy, until = 0.0, float("-inf")
    for start, end in sorted(spans):  # where several streams run at once, their time counts once
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    longest = dict(sorted(kernels.items(), key=lambda item: -item[1])[:12])
    return Profile(1e-6 * busy, launches, copies, waits, allocations, longest)
