"""How one point of `scripts.gpu.check` is measured: all sides in turns, then each by itself with a profiler."""

from __future__ import annotations

from typing import Any

import torch

from edbatch.experiments.measure import Runs, message
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.tasks import Counts, Task
from scripts.gpu.ceilings import torch_precision
from scripts.gpu.clock import WARM_UPS, Profile, Side, measure, profile, waiter
from scripts.gpu.points import OWN, PER_SAMPLE, Point
from scripts.gpu.sides import peers

LARGEST_PROFILED = 16  # samples one by one: reading a hundred thousand kernels takes the profiler seconds


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
        for name, make in peers(point, task):
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


def _row(point: Point, runs: Runs, own: Runs, costs: Counts, ceilings: dict[str, float]) -> dict[str, Any]:
    ms = runs.medians()
    row = {
        "ms": ms["total"],
        "ms prepared": ms["prepared"],
        "ms in a row": ms["in a row"],
        "host ms": ms["host"],
        "of it preparation": ms["preparation"],
        "rounds": len(runs.wall),
        "sentences/s": round(1e3 * point.batch / ms["in a row"]),
        "GFLOP": 1e-9 * costs.flops,
        "MB": 1e-6 * costs.bytes,
        **_fractions("", 1e-3 * ms["total"], costs, point, ceilings),
    }
    if own.error is None:
        by_us = own.medians()
        row["ratio"] = ms["total"] / by_us["total"]
        row["ratio prepared"] = ms["prepared"] / by_us["prepared"]
        row["ratio in a row"] = ms["in a row"] / by_us["in a row"]
    return row


def _fractions(of: str, seconds: float, costs: Counts, point: Point, ceilings: dict[str, float]) -> dict[str, float]:
    """Of the ceilings that are known."""
    shares = [("matrix rate", costs.flops, f"{point.precision}, FLOP/s"), ("copy bandwidth", costs.bytes, "copy, B/s")]
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
