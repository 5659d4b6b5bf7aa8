"""How one point of `scripts.gpu.check` is measured: all sides in turns, then each by itself with a profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.autograd import DeviceType

from scripts.bench.contest import LR, Own, Task
from scripts.bench.measure import interleaved
from scripts.bench.torch_sides import PEERS
from scripts.peers.peer import Peer, forward_run, training_step

OWN, PER_SAMPLE = "EdBatch", "per sample"
WARM_UPS = 2  # mini-batches that are not measured
LARGEST_PER_SAMPLE = 16  # mini-batch: more takes seconds, and the profiler as long


class Point(NamedTuple):
    """What is measured at once, side by side."""

    model: str
    batch: int
    hidden: int
    training: bool = False
    precision: str = "float32"

    @property
    def mode(self) -> str:
        """Forward, or all of a step of training."""
        return "training" if self.training else "forward"

    def __str__(self) -> str:
        return f"{self.model} {self.mode}, batch {self.batch}, hidden {self.hidden}, {self.precision}"


class Side(NamedTuple):
    """One way to run mini-batches: what the host makes of the one of a number, and what enqueues it, without a wait."""

    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]


class Profile(NamedTuple):
    """What the device did in a run.

    Attributes:
        busy: seconds in which a kernel or a copy ran.
        launches, copies: number of kernels; of copies and fills.
        waits: how often the host waited for the device.
        allocations: calls of CUDA for memory, the device's or pinned; some wait too.
    """

    busy: float
    launches: int
    copies: int
    waits: int
    allocations: int


@contextmanager
def torch_precision(precision: str) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """PyTorch's matrix products, cuDNN's among them, in a precision: gives the context that runs have to be in."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    bf16 = partial(torch.autocast, "cuda", torch.bfloat16, cache_enabled=False)
    try:
        yield bf16 if precision == "bf16" else nullcontext
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def sides_of(point: Point, task: Task, device: str, batches: list[Any], numbers: Callable[[], Any]) -> dict[str, Side]:
    """EdBatch, and PyTorch's networks."""
    own = Own(task, point.hidden, device, precision=point.precision)
    found = {OWN: Side(batches.__getitem__, own.step if point.training else own.forward)}
    for name, kind in PEERS[task.name].items():
        if name != PER_SAMPLE or point.batch <= LARGEST_PER_SAMPLE:
            peer = kind(own.model, device)
            step = training_step(peer, peer.optimizers(LR), numbers) if point.training else forward_run(peer, numbers)
            found[f"PyTorch {name}"] = Side(partial(_prepared, peer, batches), step)
    return found


def _prepared(peer: Peer, batches: list[Any], number: int) -> Any:
    return peer.batch([peer.prepare(sample) for sample in batches[number]])


def measured(task: Task, point: Point, device: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """One row per side: no mini-batch comes again, as in training.

    - ms: from samples to the device being done, median of mini-batches, each of another structure; EdBatch's from
      recording in Python on, PyTorch's with what the host prepares; "prepared": without that preparation; "in a row":
      per mini-batch, of others, when nobody waits between them.
    - host ms: until everything is enqueued. device ms: in which a kernel or a copy ran (by CUPTI, in a run of its own).
    - times: ms over EdBatch's.
    """
    batches = task.mini_batches(point.batch, WARM_UPS + 2 * rounds + 1)
    wait = (lambda: None) if device == "cpu" else torch.cuda.synchronize
    with torch_precision(point.precision) as numbers:
        sides = sides_of(point, task, device, batches, numbers)
        turns = {name: partial(_turn, side, wait) for name, side in sides.items()}
        runs = interleaved(turns, rounds, int, WARM_UPS, seconds)  # `int`: the number of a round is its mini-batch
        row = range(WARM_UPS + rounds, WARM_UPS + 2 * rounds)
        ms = {name: of.medians() | _in_a_row(sides[name], wait, row) for name, of in runs.items()}
        inside = {name: _inside(side, device, len(batches) - 1) for name, side in sides.items()}
    place = {"model": point.model, "mode": point.mode, "batch": point.batch, "hidden": point.hidden}
    place["precision"] = point.precision
    return [
        {**place, "by": name, **of, **inside[name]}
        | {f"{what}, times": of[what] / ms[OWN][what] for what in ("ms", "ms in a row")}
        for name, of in ms.items()
    ]


def _turn(side: Side, wait: Callable[[], None], number: int) -> dict[str, float]:
    wait()
    start = perf_counter()
    prepared = side.prepare(number)
    ready = perf_counter()
    result = side.run(prepared)
    enqueued = perf_counter()
    wait()
    end = perf_counter()
    del result
    spans = {"ms": end - start, "ms prepared": end - ready, "host ms": enqueued - start}
    return {name: 1e3 * value for name, value in spans.items()}


def _in_a_row(side: Side, wait: Callable[[], None], numbers: Sequence[int]) -> dict[str, float]:
    wait()
    start = perf_counter()
    for number in numbers:
        side.run(side.prepare(number))
    wait()
    return {"ms in a row": 1e3 * (perf_counter() - start) / len(numbers)}


def _inside(side: Side, device: str, number: int) -> dict[str, Any]:
    """What one more run shows that is not timed: on a GPU what the profiler sees."""
    if device == "cpu":
        return {}
    prepared = side.prepare(number)
    seen = profile(lambda: side.run(prepared))
    return {"device ms": 1e3 * seen.busy, **{name: value for name, value in seen._asdict().items() if name != "busy"}}


def profile(run: Callable[[], Any]) -> Profile:
    """Of a run on a GPU, whoever launches its kernels."""
    waits = _waits_of_the_profiler()
    found = summary(_events(run))
    return found._replace(waits=found.waits - waits)


@cache
def _waits_of_the_profiler() -> int:
    """It waits when it ends; the first time it may do so more often."""
    _events(lambda: None)
    return summary(_events(lambda: None)).waits


def _events(run: Callable[[], Any]) -> list[Any]:
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        result = run()
    del result
    return list(profiler.events() or ())


def summary(events: Iterable[Any]) -> Profile:
    """What the events of a profiler come to."""
    spans, copies, launches, waits, allocations = [], 0, 0, 0, 0
    for event in events:
        if event.device_type != DeviceType.CUDA:
            waits += "Synchronize" in event.name or event.name == "cudaMemcpy"
            allocations += event.name.startswith(("cudaMalloc", "cudaFree", "cudaHostAlloc"))
            continue
        spans.append((event.time_range.start, event.time_range.end))
        is_copy = event.name.startswith(("Memcpy", "Memset"))
        copies, launches = copies + is_copy, launches + (not is_copy)
    busy, until = 0.0, float("-inf")
    for start, end in sorted(spans):  # where several streams run at once, their time counts once
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return Profile(1e-6 * busy, launches, copies, waits, allocations)
