"""What a step would take on more machines than there are: every worker's part is done, one after another, and timed.

Nothing is estimated but the network. The parts of a mini-batch are those that the balancer makes, gradients are added
as the reduction adds them, and each phase's processor time is taken, of each worker; what Ray takes for objects of such
a number and size, and its driver, is measured with two real processes. A step is then what follows if all of them run
side by side, each in its order: gradients, the next part recorded, what it owns added up, the update.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.distributed import Network
from edbatch.distributed.gradients import Piece
from edbatch.distributed.job import Job, Part, state_of
from edbatch.distributed.shares import divided
from edbatch.distributed.worker import Worker
from edbatch.graph.options import current_options
from scripts.bench.ray_costs import Costs, ray_costs


@dataclass
class Step:
    """Of each worker, in seconds: its part recorded, gradients, its sums, the update; and bytes of what it sends."""

    record: list[float] = field(default_factory=list)
    gradients: list[float] = field(default_factory=list)
    reduce: list[float] = field(default_factory=list)
    update: float = 0.0
    divide: float = 0.0
    sent: list[list[int]] = field(default_factory=list)  # to each owner
    sums: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    @property
    def busy(self) -> list[float]:
        """The processor of each worker."""
        phases = zip(self.record, self.gradients, self.reduce, strict=True)
        return [sum(of_one) + self.update for of_one in phases]

    @property
    def bytes(self) -> float:
        """That a worker sends, on average."""
        n = len(self.sums)
        return (sum(map(sum, self.sent)) + (n - 1) * sum(self.sums)) / n


class Crew:
    """Workers of a run, all by one: they have the same model."""

    def __init__(self, run: eb.Run, n: int) -> None:
        self.run, self.n = run, n
        job = Job(run.model, run.trainer, run.losses, run.policy, False, asdict(current_options()), None, 10**9)
        self.worker = Worker(pickle.dumps(job, protocol=5), 0, n)
        self.worker.ready()
        self.worker.begin(state_of(run.model, run.trainer), 0)

    def step(self, numbers: list[int]) -> Step:
        """Do a mini-batch."""
        found, worker, data = Step(), self.worker, self.run.data
        parts, found.divide = timed(lambda: self._parts(numbers))
        given: list[list[Piece | None]] = []
        own = []
        for number, part in enumerate(parts):
            worker._number = number
            times = []
            for _ in range(2):  # what else the machine does is in one of them, mostly
                _, recording = timed(lambda part=part: worker.record(part, worker._step))
                pieces, seconds = timed(worker.gradients)
                times.append((recording, seconds))
            pieces = pieces if self.n > 1 else [pieces]
            found.record.append(min(recording for recording, _ in times))
            found.gradients.append(min(seconds for _, seconds in times))
            found.nodes.append(worker._nodes)
            own.append(copied(worker._own))
            given.append(copied(pieces))
            found.sent.append([0 if piece is None else piece.bytes for piece in pieces])
        sums = []
        for owner in range(self.n):
            worker._number, worker._own = owner, own[owner]
            total, seconds = timed(lambda owner=owner: worker.reduce(*(of_one[owner] for of_one in given)))
            found.reduce.append(seconds)
            found.sums.append(total.bytes)
            sums.append(copied(total))
        _, found.update = timed(lambda: worker.update(*sums))
        assert len(data) >= len(numbers)
        return found

    def _parts(self, numbers: list[int]) -> list[Part]:
        samples = [self.run.data[number] for number in numbers]
        return [
            Part([samples[at] for at in places], [numbers[at] for at in places], places, len(numbers))
            for places in divided([len(words) for words, _ in samples], self.n)
        ]


def sizes_of(step: Step) -> tuple[int, int]:
    """Of what a worker sends another, on average, and of its sums."""
    n = len(step.sums)
    return int(np.mean([np.mean(x) for x in step.sent]) * n / max(n - 1, 1)), int(np.mean(step.sums))


def together(steps: list[Step], costs: Costs, network: Network | None) -> dict[str, float]:
    """How long a step takes if all run side by side, and what of it is waiting for whom; in seconds."""
    n = len(steps[0].sums)
    wire = (lambda size: 0.0) if network is None else network.seconds
    begins, ends = [0.0] * n, []
    waits, sums = [], []
    for step, after in zip(steps, [*steps[1:], steps[0]], strict=True):
        given = [at + seconds for at, seconds in zip(begins, step.gradients, strict=True)]
        recorded = [at + seconds for at, seconds in zip(given, after.record, strict=True)]
        come = [
            max(given) + (wire(sum(of_one[owner] for of_one in step.sent)) + costs.first if n > 1 else 0.0)
            for owner in range(n)
        ]
        added = [max(at, here) + seconds for at, here, seconds in zip(come, recorded, step.reduce, strict=True)]
        total = sum(step.sums)
        known = max(added) + (wire(total * (n - 1) / n) + costs.second + costs.calls if n > 1 else 0.0)
        waits.append(np.mean([known - b for b in recorded]))
        begins = [known + step.update] * n
        ends.append(begins[0])
        sums.append(total)
    speed = float("inf") if network is None else network.bytes_per_second
    seconds = {
        "workers": median(b - a for a, b in zip([0.0, *ends], ends, strict=False)),
        "driver's processor": costs.driver + median(step.divide for step in steps),
        "driver's wire": n * costs.through / speed,
    }
    return {"step": max(seconds.values()), "waiting": float(np.median(waits))} | seconds


def rows(crews: Iterator[tuple[str, int, int, Callable[[], list[Step]]]], network: Network) -> Iterator[dict[str, Any]]:
    """A row for each number of machines; one is the measure of its kind (weak, strong)."""
    import ray

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ones: dict[str, float] = {}
    for kind, n, batch, steps_of in crews:
        steps = steps_of()
        costs = ray_costs(n, *sizes_of(steps[0]))
        found = together(steps, costs, network if n > 1 else None)
        ones.setdefault(kind, found["step"] / batch)
        yield {
            "": kind,
            "machines": n,
            "trees": batch,
            "largest part": median(max(x.nodes) * n / sum(x.nodes) for x in steps),
            "gradients, ms": 1e3 * median(max(x.gradients) for x in steps),
            "record, ms": 1e3 * median(max(x.record) for x in steps),
            "add, ms": 1e3 * median(max(x.reduce) for x in steps),
            "update, ms": 1e3 * median(x.update for x in steps),
            "MiB sent": median(x.bytes for x in steps) / 2**20,
            "Ray, ms": 1e3 * (costs.calls + costs.first + costs.second),
            "waiting, ms": 1e3 * found["waiting"],
            "driver's processor, ms": 1e3 * found["driver's processor"],
            "driver's wire, ms": 1e3 * found["driver's wire"],
            "step, ms": 1e3 * found["step"],
            "times one": ones[kind] * batch / found["step"],
            "processor, ms": 1e3 * median(max(x.busy) for x in steps),
            "on one machine, ms": 1e3 * together(steps, costs, None)["step"],
        }
    ray.shutdown()


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its processor time."""
    start = thread_time()
    found = call()
    return found, thread_time() - start


def copied(x: Any) -> Any:
    """As another process gets it."""
    return pickle.loads(pickle.dumps(x, protocol=5))
