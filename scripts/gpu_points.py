"""The points that `gpu_check.py` measures, the most important first, and how one is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import bench_common  # noqa: F401 (it sets up the environment before NumPy loads)
import torch
from gpu_ceilings import torch_precision
from gpu_clock import WARM_UPS, Profile, Side, Times, measure, profile, waiter
from gpu_tasks import LR, Counts, Own, Task
from gpu_worker import message
from torch_peers import Peer, training_step

OWN = "EdBatch"
PER_SAMPLE = "PyTorch per sample"
LARGEST_PER_SAMPLE = 64  # mini-batch: more takes seconds and tells nothing new
LARGEST_PROFILED = 16  # of these: reading a hundred thousand kernels takes the profiler seconds
COMPARED = 64, 256  # batch and hidden at which the models are compared
PAPER = {(10, 256): 2.78, (10, 512): 4.70, (20, 256): 3.52, (20, 512): 4.82}  # ms by batch and hidden: its table 5


@dataclass(frozen=True)
class Point:
    """What is measured at once, side by side.

    Attributes:
        model: name of the task.
        batch: samples of a mini-batch.
        hidden: size of states.
        training: forward, backward and update; else forward alone.
        precision: of matrix products.
        per_sample, graphed, compiled: which of PyTorch's sides there are beside those batched by hand.
    """

    model: str
    batch: int
    hidden: int
    training: bool = False
    precision: str = "float32"
    per_sample: bool = False
    graphed: bool = False
    compiled: bool = False

    @property
    def place(self) -> dict[str, Any]:
        """The first columns of its rows."""
        mode = "training" if self.training else "forward"
        return {"model": self.model, "mode": mode, "batch": self.batch, "hidden": self.hidden,
                "precision": self.precision}  # fmt: skip

    def __str__(self) -> str:
        extra = [name for name in ("per_sample", "graphed", "compiled") if getattr(self, name)]
        return " ".join(map(str, [*self.place.values(), *extra]))


def points(models: list[str], device: str, quick: bool = False) -> list[Point]:
    """All points, the most important first."""
    gpu = device != "cpu"
    if quick:  # every kind once
        found = [Point(model, 4, 16, training, per_sample=True, graphed=gpu)
                 for training in (False, True) for model in models]  # fmt: skip
        if gpu:
            found += [Point(models[0], 4, 16, training, precision) for precision in ("tf32", "bf16")
                      for training in (False, True)]  # fmt: skip
            found += [Point(models[0], 4, 16, training, compiled=True) for training in (False, True)]
        return [*found, *(Point("TreeLSTM", *at, graphed=gpu) for at in list(PAPER)[:1] if "TreeLSTM" in models)]
    ordered = [Point(model, 64, 256, per_sample=True, graphed=gpu) for model in models]
    ordered += [Point("TreeLSTM", *at, graphed=gpu) for at in PAPER if "TreeLSTM" in models]
    ordered += [Point(model, 64, 256, True, per_sample=True, graphed=gpu) for model in models]
    if gpu:
        ordered += [
            Point(model, 64, 256, training, precision)
            for precision, training, model in product(("tf32", "bf16"), (False, True), models)
        ]
    ordered += [Point(model, 64, 256, training, compiled=True) for training in (False, True) for model in models]
    # By batch and hidden: along both axes first, then the corners, then the rest.
    sweep = [
        (1, 256),
        (256, 256),
        (64, 1024),
        (64, 64),
        (64, 512),
        (16, 256),
        (4, 256),
        (256, 1024),
        (1, 64),
        (256, 64),
    ]
    sweep += [at for at in product((256, 16, 4, 1), (64, 512, 1024)) if at not in sweep]
    ordered += [
        Point(model, *at, training, per_sample=at[0] in (1, 16)) for at in sweep for training in (False, True)
        for model in models
    ]  # fmt: skip
    return ordered


def asked_for(point: Point) -> bool:
    """Whether one of the figures that were asked for is of it; see `gpu_figures`."""
    if point.training or point.precision != "float32" or point.compiled:
        return False
    at = point.batch, point.hidden
    return at == COMPARED or (point.model == "TreeLSTM" and at in PAPER)


def run_point(
    point: Point, task: Task, device: str, ceilings: dict[str, float], rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """One row per side. A side that fails has a row with its error."""
    wait = waiter(device)
    # Measured one by one, measured in a row, and two to look into: no mini-batch comes again, as in training.
    last = WARM_UPS + 2 * rounds
    turns, row_of_them = range(WARM_UPS, WARM_UPS + rounds), range(WARM_UPS + rounds, last)
    mini_batches = task.mini_batches(point.batch, last + 2)
    factor = 3 if point.training else 1  # products and traffic of backward are twice those of forward
    counts = [
        Counts(*(factor * each for each in task.count(samples, point.hidden))) for samples in mini_batches[WARM_UPS:]
    ]
    mean = Counts(*(sum(each) / rounds for each in zip(*counts[:rounds], strict=True)))
    rows: list[dict[str, Any]] = []
    if point.compiled:
        torch.compiler.reset()  # what was compiled for another network does not count against this one's limit
    with torch_precision(point.precision) as numbers:
        own = Own(task, point.hidden, device, point.precision)
        run_own = own.step if point.training else own.forward
        sides = [Side(OWN, mini_batches.__getitem__, run_own)]
        for name, make in _peers(point, task):
            try:
                sides.append(make(name, own, mini_batches, device, numbers))
            except Exception as error:
                rows.append({**point.place, "by": name, "error": message(error)})
        times = measure(sides, turns, row_of_them, seconds, wait)
        for at, side in enumerate(sides):
            row = {**point.place, "by": side.name}
            rows.insert(at, row)
            found = times[side.name]
            if found.error is not None:
                row["error"] = found.error
                continue
            row |= _row(point, found, times[OWN], mean, ceilings)
            try:
                row |= _inside(side, device, (last, last + 1), counts[-1], point, ceilings)
            except Exception as error:
                row["profile"] = message(error)
    return rows


def _row(point: Point, times: Times, own: Times, costs: Counts, ceilings: dict[str, float]) -> dict[str, Any]:
    assert times.in_a_row is not None
    row = {
        "ms": times.ms("total"),
        "ms prepared": times.ms("prepared"),
        "ms in a row": 1e3 * times.in_a_row,
        "host ms": times.ms("host"),
        "of it preparation": times.ms("preparation"),
        "rounds": len(times.total),
        "sentences/s": round(point.batch / times.in_a_row),
        "GFLOP": 1e-9 * costs.flops,
        "MB": 1e-6 * costs.bytes,
        **_fractions("", 1e-3 * times.ms("total"), costs, point, ceilings),
    }
    if own.error is None:
        row["ratio"] = times.ms("total") / own.ms("total")
        row["ratio prepared"] = times.ms("prepared") / own.ms("prepared")
        row["ratio in a row"] = times.in_a_row / (own.in_a_row or float("nan"))
    return row


def _fractions(of: str, seconds: float, costs: Counts, point: Point, ceilings: dict[str, float]) -> dict[str, float]:
    """Of the ceilings that are known."""
    shares = [
        ("matrix rate", costs.flops, f"{point.precision}, FLOP/s"),
        ("copy bandwidth", costs.bytes, "copy, B/s"),
    ]
    return {
        f"% of {name}{of}": 100 * cost / seconds / ceilings[ceiling]
        for name, cost, ceiling in shares
        if ceiling in ceilings
    }


def _inside(
    side: Side, device: str, numbers: tuple[int, int], costs: Counts, point: Point, ceilings: dict[str, float]
) -> dict[str, Any]:
    """What two more runs show that are not timed: batches, stages, memory; and on a GPU what the profiler sees."""
    row: dict[str, Any] = {}
    if side.name == OWN:
        report = side.run(side.prepare(numbers[0])).report()
        row |= {
            "batches": report.batches,
            "memory, MB": 1e-6 * report.memory_bytes,
            "gathered, MB": 1e-6 * report.gathered_bytes,
            "stages, ms": {stage: 1e3 * seconds for stage, seconds in report.seconds.items()},
        }
    if device == "cpu" or (side.name == PER_SAMPLE and point.batch > LARGEST_PROFILED):
        return row
    prepared = side.prepare(numbers[1])
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seen: Profile = profile(lambda: side.run(prepared))
    if not seen.launches:
        return row | {"profile": "saw no kernels; is CUPTI there?"}
    if side.name != OWN:
        row["memory, MB"] = 1e-6 * (torch.cuda.max_memory_allocated() - before)
    return row | {
        "device ms": 1e3 * seen.busy,
        "launches": seen.launches,
        "copies": seen.copies,
        "waits": seen.waits,
        "allocations": seen.allocations,
        "kernels, ms": {name: 1e3 * seconds for name, seconds in seen.kernels.items()},
        **_fractions(", device", seen.busy, costs, point, ceilings),
    }


Maker = Callable[..., Side]


def _peers(point: Point, task: Task) -> Iterator[tuple[str, Maker]]:
    """PyTorch's sides of a point."""
    if point.per_sample and point.batch <= LARGEST_PER_SAMPLE:
        yield PER_SAMPLE, lambda *given: _eager(task.per_sample, point, *given)
    for name, kind in task.by_hand.items():
        yield f"PyTorch {name}", lambda *given, kind=kind: _eager(kind, point, *given)
        if point.graphed:
            yield f"PyTorch {name}, CUDA graph", lambda *given, kind=kind: _graphed(kind, point, *given)
        if point.compiled and kind.compilable:
            yield f"PyTorch {name}, compiled", lambda *given, kind=kind: _eager(kind, point, *given, compiled=True)


def _runner(peer: Peer, training: bool, numbers: Callable[[], Any]) -> Callable[[Any], Any]:
    if training:
        return training_step(peer, peer.sgd(LR), numbers)

    def forward(batch: Any) -> Any:
        with torch.inference_mode(), numbers():
            return peer.probabilities(batch)

    return forward


def _eager(
    kind: type[Peer], point: Point, name: str, own: Own, mini_batches: list[Any], device: str, numbers: Any,
    compiled: bool = False,
) -> Side:  # fmt: skip
    peer = kind(own.model, device, compiled)

    def prepare(number: int) -> Any:
        return peer.batch([peer.prepare(sample) for sample in mini_batches[number]])

    return Side(name, prepare, _runner(peer, point.training, numbers))


def _graphed(
    kind: type[Peer], point: Point, name: str, own: Own, mini_batches: list[Any], device: str, numbers: Any
) -> Side:
    """The best case: each mini-batch's own structure was captured before the clock runs, and is replayed."""
    peer = kind(own.model, device)
    run = _runner(peer, point.training, numbers)
    graphs, batches = [], []
    pool, stream, before = torch.cuda.graph_pool_handle(), torch.cuda.Stream(), torch.cuda.current_stream()
    try:
        for samples in mini_batches:
            batch = peer.batch([peer.prepare(sample) for sample in samples])
            stream.wait_stream(before)
            with torch.cuda.stream(stream):
                run(batch)
            before.wait_stream(stream)
            peer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                run(batch)
            graphs.append(graph)
            batches.append(batch)  # its memory is what the graph reads
    finally:
        torch.cuda.set_stream(before)  # PyTorch leaves the other one current where a capture fails

    def replay(graph: Any) -> Any:
        graph.replay()
        return batches

    return Side(name, graphs.__getitem__, replay)
