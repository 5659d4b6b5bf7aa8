"""What Ray takes for the objects of a step, whatever is computed; measured with a few real processes."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

INLINE = 100 * 2**10  # bytes: Ray sends what is smaller by way of the driver
TRIES = 30
CALLS = 4  # of a worker in a step


@dataclass(frozen=True)
class Costs:
    """Seconds, for one worker in one step: its calls, both rounds, the driver's processor; bytes through the driver."""

    calls: float
    first: float
    second: float
    driver: float
    through: float


class End:
    """One end of what Ray sends."""

    def give(self, n: int, size: int) -> Any:
        """So many objects of a size."""
        found = [np.ones(max(size // 4, 1), np.float32) for _ in range(n)]
        return found if n > 1 else found[0]

    def take(self, *pieces: Any) -> None:
        """What another has given."""


def ray_costs(n: int, *sizes: int) -> Costs:
    """Of a step of so many workers, where pieces and sums have these sizes; measured, on this machine."""
    import ray

    if n == 1:
        return Costs(0.0, 0.0, 0.0, 0.0, 0.0)
    ends = [ray.remote(End).options(num_cpus=0).remote() for _ in range(4)]
    one, two, *_ = ends
    ray.get([end.take.remote() for end in ends])
    start = perf_counter()
    ray.get([two.take.remote() for _ in range(CALLS * TRIES)])  # one after another, as those of a step
    calls = (perf_counter() - start) / TRIES
    found = Costs(
        calls,
        median(sum(sent(one, two, n, n, sizes[0])) for _ in range(TRIES)),
        median(sum(sent(one, two, 1, n, sizes[1])) for _ in range(TRIES)),
        driver([ends[at % len(ends)] for at in range(n)], *sizes),
        n * sizes[0] * (sizes[0] < INLINE) + sizes[1] * (sizes[1] < INLINE),
    )
    for end in ends:
        ray.kill(end)
    return found


def given(end: Any, n: int, size: int) -> list[Any]:
    """Objects, that are not there yet."""
    found = end.give.options(num_returns=n).remote(n, size)
    return found if n > 1 else [found]


def sent(one: Any, two: Any, gives: int, takes: int, size: int) -> tuple[float, float]:
    """Seconds of giving objects, and of taking them, some of which others give; without what an empty call takes."""
    import ray

    start = perf_counter()
    ray.get(two.take.remote())
    empty = perf_counter() - start
    start = perf_counter()
    refs = given(one, gives, size)
    ray.wait(refs, num_returns=gives, fetch_local=False)
    giving = perf_counter() - start - empty
    refs += [ref for _ in range(takes - gives) for ref in given(one, 1, size)]
    ray.wait(refs, num_returns=takes, fetch_local=False)
    start = perf_counter()
    ray.get(two.take.remote(*refs))
    return max(giving, 0.0), max(perf_counter() - start - empty, 0.0)


def driver(ends: list[Any], piece: int, total: int) -> float:
    """Processor seconds of the driver in a step, of the thread that has more: some ends are several workers."""
    import ray

    piece, total = (min(size, INLINE + 4) for size in (piece, total))  # what is larger it does not see

    def step() -> None:
        recorded = [end.take.remote() for end in ends]
        pieces = [given(end, len(ends), piece) for end in ends]
        sums = []
        for owner, end in enumerate(ends):
            end.take.remote(*(of_one[owner] for of_one in pieces))
            sums += given(end, 1, total)
        ray.get(recorded + [end.take.remote(*sums) for end in ends])

    step()
    times = []
    for _ in range(5):
        all_threads, this = process_time(), thread_time()
        step()
        all_threads, this = process_time() - all_threads, thread_time() - this
        times.append(max(this, all_threads - this))
    return median(times)
