"""Training by several workers: steps of a TreeLSTM on the Stanford Sentiment Treebank, and bytes sent.

    EDBATCH_DATA=... python -m scripts.bench.distributed [--json] [--rounds 5] [--hidden 256] [--batch 256] [--steps 6]
    EDBATCH_DATA=... python -m scripts.bench.distributed --apart [--gigabits 10 --latency 100]
    EDBATCH_DATA=... python -m scripts.bench.distributed --simulate 2 8 64 [--gigabits 10 --latency 100] [--steps 3]

Needs Ray (the extra `ray`). One process without workers, one worker and two train in turns, each with one thread,
on the same mini-batches; a round is so many steps of each, and the first step of a round, which waits for nothing, is
left out. Speed-ups are ratios of the least and of the median time of a step; processor time is of the worker that took
longest: its ratio is what the clock says on idle cores. `--latency` (microseconds) and `--gigabits` have reductions
wait as they would for a network of that kind between machines, with one worker on each. `--apart` has the same workers
again, that record a mini-batch after the update and not while they wait for a reduction. `--simulate` does the parts of
so many machines' workers one after another, and says what a step would take, see `scripts.bench.simulated`; two real
workers are beside it. Where there are not enough trees, they come again: made-up ones have few words.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice, pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

import edbatch as eb
from edbatch.distributed import Network, train
from edbatch.distributed.job import Done, Part
from edbatch.distributed.team import Team
from edbatch.models import TreeLSTM
from edbatch.models.workloads import get_workload
from scripts import data_folder
from scripts.bench.report import Tables, command, figure
from scripts.bench.simulated import Crew, Step, rows

ASKED = 1.6  # of two workers, over one
LR = 1e-4
Round = tuple[list[float], list[float]]  # seconds and processor seconds of steps


class Apart(Team):
    """Workers that record a mini-batch when the one before is done."""

    def steps(self, parts: Iterator[list[Part]], step: int) -> Iterator[list[Done]]:
        """As of `Team`."""
        waiting: list[tuple[list[Any], list[Any]]] = []
        for number, of_one in enumerate(parts, start=step):
            recorded = self._record(of_one, number)
            pieces = [self._called(worker.gradients, self._n) for worker in self._workers]
            sums = [worker.reduce.remote(*(x[owner] for x in pieces)) for owner, worker in enumerate(self._workers)]
            waiting.append((recorded, [worker.update.remote(*sums) for worker in self._workers]))
            if len(waiting) > 1:
                yield self._waited(*waiting.pop(0))
        for one in waiting:
            yield self._waited(*one)


class Learner:
    """A run on the first trees, of which each epoch is a round."""

    def __init__(self, folder: str, arguments: argparse.Namespace) -> None:
        workload, data = get_workload("tree-lstm"), data_folder()
        n = arguments.batch * arguments.steps
        trees = workload.generate(n, 0) if data is None else workload.stream(data / workload.folder[0]).take(n)
        trees = list(islice(cycle(trees), n))
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


def by_workers(
    n: int, report: dict[int, Any], given: dict[str, Any], team: type[Team] = Team
) -> Callable[[Learner, int], Iterator[Round]]:
    """Of so many."""

    def rounds_of(learner: Learner, rounds: int) -> Iterator[Round]:
        training = train(learner.run, rounds, workers=n, **given)
        while True:
            with patch("edbatch.distributed.steps.Team", team):  # workers begin with the first epoch
                if next(training, None) is None:
                    return
            of = training.report
            yield of.seconds[1:], of.cpu_seconds[1:]
            report[n] = of
            of.seconds, of.cpu_seconds = [], []

    return rounds_of


def tables(arguments: argparse.Namespace) -> Tables:
    """Measure."""
    import ray

    if arguments.simulate:
        return simulated(arguments)
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)  # one for all, begun once
    reports: dict[int, Any] = {}
    given: dict[str, Any] = {}
    if arguments.latency or arguments.gigabits:
        given["network"] = Network((arguments.gigabits or 1e3) * 1e9 / 8, arguments.latency * 1e-6)
    kinds = {"one process": alone, "1 worker": by_workers(1, reports, given)}
    kinds |= {f"{n} workers": by_workers(n, reports, given) for n in arguments.workers}
    if arguments.apart:
        kinds |= {f"{n} workers, apart": by_workers(n, {}, given, Apart) for n in arguments.workers}
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


def simulated(arguments: argparse.Namespace) -> Tables:
    """Machines that are not there; and two workers that are."""
    network = Network((arguments.gigabits or 10) * 1e9 / 8, (arguments.latency or 100) * 1e-6)

    def crew(folder: str, n: int, batch: int) -> list[Step]:
        learner = Learner(folder, argparse.Namespace(**vars(arguments) | {"batch": batch}))
        crew = Crew(learner.run, n)
        batches = [list(range(at * batch, (at + 1) * batch)) for at in range(arguments.steps)]
        crew.step(batches[0])  # compiles
        return [crew.step(numbers) for numbers in batches]

    with tempfile.TemporaryDirectory() as folder, eb.options(threads=1):
        crews = [
            (kind, n, n * arguments.batch if kind == "weak" else arguments.batch)
            for kind in ("weak", "strong")
            for n in (1, *arguments.simulate)
        ]
        found = list(rows(((*one, partial(crew, str(Path(folder) / str(one)), *one[1:])) for one in crews), network))
        learner = Learner(str(Path(folder) / "real"), arguments)
        rounds = list(by_workers(2, {}, {})(learner, arguments.rounds + 1))[1:]
    wall, cpu = ([x for of in rounds for x in of[at]] for at in (0, 1))
    beside = [{"two workers, ms": 1e3 * median(wall), "least": 1e3 * min(wall), "processor": 1e3 * median(cpu)}]
    two = next((row for row in found if (row[""], row["machines"]) == ("strong", 2)), None)
    if two is not None:
        beside[0] |= {"simulated": two["on one machine, ms"], "its processor": two["processor, ms"]}
    return {
        f"{network.bytes_per_second * 8e-9:g} Gbit/s, {network.latency * 1e3:g} ms, hidden {arguments.hidden}": found,
        f"a step of {arguments.batch} trees, two workers on this machine": beside,
    }


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
    simulate=(),
    apart={"action": "store_true"},
)

if __name__ == "__main__":
    main()
