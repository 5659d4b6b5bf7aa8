"""Training by several workers: steps of a TreeLSTM on the Stanford Sentiment Treebank, and bytes sent.

    EDBATCH_DATA=... python -m scripts.bench.distributed [--json] [--rounds 5] [--hidden 256] [--batch 256] [--steps 6]

Needs Ray (the extra `ray`). One process without workers, one worker and two train in turns, each with one thread,
on the same mini-batches; a round is so many steps of each, and the first step of a round, which waits for nothing, is
left out. Speed-ups are ratios of the least and of the median time of a step; processor time is of the worker that took
longest: its ratio is what the clock says on idle cores. `--latency` (microseconds) and `--gigabits` have reductions
wait as they would for a network of that kind between machines, with one worker on each.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import edbatch as eb
from edbatch.distributed import Network, train
from edbatch.models import TreeLSTM
from edbatch.models.workloads import get_workload
from scripts import data_folder
from scripts.bench.report import Tables, command, figure

ASKED = 1.6  # of two workers, over one
LR = 1e-4
Round = tuple[list[float], list[float]]  # seconds and processor seconds of steps


class Learner:
    """A run on the first trees, of which each epoch is a round."""

    def __init__(self, folder: str, arguments: argparse.Namespace) -> None:
        workload, data = get_workload("tree-lstm"), data_folder()
        n = arguments.batch * arguments.steps
        trees = workload.generate(n, 0) if data is None else workload.stream(data / workload.folder[0]).take(n)
        samples, sizes, labels = workload.number(trees)
        model = eb.ParameterCollection(seed=0)
        self.network = TreeLSTM(model, *sizes, arguments.hidden)
        self.labels = len(labels)
        self.began: list[tuple[float, float]] = []
        self.run = eb.Run(
            folder, model, eb.Adam(model, lr=LR, clip=5.0), self.losses, samples,
            batch_size=arguments.batch, save_every=10**6, policy="sufficient", progress=False,
        )  # fmt: skip

    def losses(self, batch: list[Any]) -> list[eb.Expression]:
        """At every node; any labels take as long as those of people."""
        self.began.append((perf_counter(), thread_time()))
        return [
            self.network.cross_entropy(h, at % self.labels)
            for sample in batch
            for at, h in enumerate(self.network.hidden(*sample))
        ]


def alone(learner: Learner, rounds: int) -> Iterator[Round]:
    """Of one process, without workers."""
    for _ in learner.run.epochs(rounds):
        wall, cpu = ([b - a for a, b in pairwise(x)] for x in zip(*learner.began, strict=True))
        learner.began.clear()
        yield list(wall), list(cpu)


def by_workers(n: int, report: dict[int, Any], given: dict[str, Any]) -> Callable[[Learner, int], Iterator[Round]]:
    """Of so many."""

    def rounds_of(learner: Learner, rounds: int) -> Iterator[Round]:
        training = train(learner.run, rounds, workers=n, **given)
        for _ in training:
            of = training.report
            yield of.seconds[1:], of.cpu_seconds[1:]
            report[n] = of
            of.seconds, of.cpu_seconds = [], []

    return rounds_of


def tables(arguments: argparse.Namespace) -> Tables:
    """Measure."""
    import ray

    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)  # one for all, begun once
    reports: dict[int, Any] = {}
    given: dict[str, Any] = {}
    if arguments.latency or arguments.gigabits:
        given["network"] = Network((arguments.gigabits or 1e3) * 1e9 / 8, arguments.latency * 1e-6)
    kinds = {"one process": alone, "1 worker": by_workers(1, reports, given)}
    kinds |= {f"{n} workers": by_workers(n, reports, given) for n in arguments.workers}
    found: dict[str, list[Round]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder, eb.options(threads=1):
        running = {
            kind: rounds_of(Learner(str(Path(folder) / kind), arguments), arguments.rounds + 1)
            for kind, rounds_of in kinds.items()
        }
        for number in range(arguments.rounds + 1):
            for kind, rounds in running.items():
                measured = next(rounds)
                if number:  # the first compiles, and counts nodes
                    found[kind].append(measured)
        for rounds in running.values():
            list(rounds)
    ray.shutdown()
    rows, one = [], {}
    for kind, rounds in found.items():
        wall, cpu = ([x for of_round in part for x in of_round] for part in zip(*rounds, strict=True))
        of = {"least": min(wall), "median": median(wall), "processor": median(cpu)}
        if kind == "1 worker":
            one = of
        report = reports.get(int(kind.split()[0])) if kind != "one process" else None
        rows.append(
            {"kind": kind}
            | {f"{name}, ms": 1e3 * x for name, x in of.items()}
            | {f"times 1 worker, {name}": one[name] / x if one else 1.0 for name, x in of.items()}
            | {"MiB sent per step": report.bytes_per_step / 2**20 if report else 0.0}
            | {"largest part": report.balance if report else 1.0}
        )
    two = next((row for row in rows if row["kind"] == "2 workers"), rows[-1])
    asked = [figure(f"2 workers, {name}", two[f"times 1 worker, {name}"], ASKED) for name in ("least", "median")]
    return {f"a step of {arguments.batch} trees, hidden size {arguments.hidden}": rows, "asked": asked}


main = command(
    __doc__,
    tables,
    rounds=5,
    workers=(2,),
    hidden={"type": int, "default": 256},
    batch={"type": int, "default": 256},
    steps={"type": int, "default": 6},
    latency={"type": float, "default": 0.0},
    gigabits={"type": float, "default": 0.0},
)

if __name__ == "__main__":
    main()
