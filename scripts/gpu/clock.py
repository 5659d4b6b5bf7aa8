"""Time on the host and on the device: sides that take turns, mini-batches in a row, and what a profiler sees."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.autograd import DeviceType

from scripts.gpu.worker import message

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


@dataclass
class Times:
    """Seconds per mini-batch.

    Attributes:
        preparation: of the host, before anything runs.
        host: until all is enqueued, preparation included.
        prepared: from the end of the preparation until the device is done.
        total: until the device is done, preparation included.
        in_a_row: per mini-batch, waiting only after the last, preparation included.
        error: why there are no times.
    """

    preparation: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    prepared: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    in_a_row: float | None = None
    error: str | None = None

    def ms(self, name: str) -> float:
        """The median."""
        return 1e3 * statistics.median(getattr(self, name))


def waiter(device: str) -> Callable[[], None]:
    """Waits until the device has nothing to do, whoever gave it."""
    return (lambda: None) if device == "cpu" else torch.cuda.synchronize


def measure(
    sides: Sequence[Side], turns: Sequence[int], row: Sequence[int], seconds: float, wait: Callable[[], None]
) -> dict[str, Times]:
    """Times of all sides on the mini-batches with these numbers; those before `WARM_UPS` warm up.

    The sides take turns, so that noise hits all alike. After `seconds` no new turn begins, but two there are. As many
    mini-batches of `row` are then run without a pause: others, for what comes again may be cheaper. A side that fails
    has its error for a result.
    """
    times = {side.name: Times() for side in sides}

    def attempt(side: Side, action: Callable[[Side, Times], None]) -> None:
        found = times[side.name]
        if found.error is None:
            try:
                action(side, found)
            except Exception as error:
                found.error = message(error)

    def warm_up(side: Side, _: Times) -> None:
        for number in range(WARM_UPS):
            side.run(side.prepare(number))
            wait()

    for side in sides:
        attempt(side, warm_up)
    gc.collect()
    begin, measured = perf_counter(), 0
    for number in turns:
        if measured >= 2 and perf_counter() - begin > seconds:
            break
        measured += 1
        gc.collect()
        for side in sides:
            attempt(side, lambda side, found, number=number: _one_turn(side, found, number, wait))
    for side in sides:
        attempt(side, lambda side, found: _in_a_row(side, found, row[:measured], wait))
    return times


def _one_turn(side: Side, times: Times, number: int, wait: Callable[[], None]) -> None:
    wait()
    start = perf_counter()
    prepared = side.prepare(number)
    ready = perf_counter()
    result = side.run(prepared)
    enqueued = perf_counter()
    wait()
    end = perf_counter()
    del result
    times.preparation.append(ready - start)
    times.host.append(enqueued - start)
    times.prepared.append(end - ready)
    times.total.append(end - start)


def _in_a_row(side: Side, times: Times, numbers: Sequence[int], wait: Callable[[], None]) -> None:
    wait()
    start = perf_counter()
    for number in numbers:
        side.run(side.prepare(number))
    wait()
    times.in_a_row = (perf_counter() - start) / len(numbers)


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
