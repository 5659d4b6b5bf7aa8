"""Mini-batches of a run, done by workers: sent, waited for, and done again where workers are lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from edbatch.base.context_stack import on_exit
from edbatch.base.lazy import LazyModule
from edbatch.distributed.cluster import Cluster, WorkerLost, ray
from edbatch.distributed.failures import failed, unsendable
from edbatch.distributed.samples import Recipe, read
from edbatch.distributed.worker import Job, Worker, state_of, take_state
from edbatch.errors import EdBatchError
from edbatch.training.run import Run

cloudpickle = LazyModule("ray.cloudpickle")

ATTEMPTS = 4  # at one step
AHEAD = 1  # steps that are sent before one is waited for, so that no worker waits for the driver
TO_ANSWER = 30.0  # seconds in which a worker that is there says how far it is


@dataclass
class Report:
    """What a training by workers took so far.

    Attributes:
        workers: how many.
        steps: done.
        replaced: how often workers were lost and replaced.
        bytes_per_step: sent by a worker to others, on average.
        processes: of the workers, each on its machine; none before the first step.
    """

    workers: int
    steps: int = 0
    replaced: int = 0
    bytes_per_step: float = 0.0
    processes: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        sent = f"{self.bytes_per_step / 2**20:.2f} MiB sent per step and worker"
        return f"{self.workers} workers, {self.steps:,} steps, {sent}; workers replaced {self.replaced} times"


class Team:
    """The workers of a training: what `Run.epochs_by` takes.

    What they send one another goes from worker to worker: this process has references only, to results of later.

    Args:
        run: whose mini-batches they do.
        cluster: where they are.
        report: of what they do.
        mean, timeout: as of `train`.
    """

    def __init__(self, run: Run, cluster: Cluster, report: Report, mean: bool, timeout: float) -> None:
        self._run, self._cluster, self._report = run, cluster, report
        self._n, self._mean, self._timeout = report.workers, mean, timeout
        self._workers: list[Any] = []
        self._sizes: dict[int, int] = {}

    def evaluate(self) -> Mapping[str, float]:
        """What is measured after an epoch, with the run's own model."""
        try:
            return self._run.evaluate() if self._run.evaluate is not None else {}
        except Exception as error:
            raise failed("train: evaluate", error) from error

    def steps(self, batches: list[list[int]]) -> Generator[float]:
        """Do mini-batches; at each checkpoint the run's own model becomes what the workers have."""
        run, begin, end = self._run, self._run.step, self._run.step + len(batches)
        saved, lost, failures = begin, not self._workers, (begin, 0)
        with on_exit(lambda: self._go_back(saved)):
            while run.step < end:
                until = min(end, saved + run.save_every - saved % run.save_every)
                try:
                    told, lost = (self._recovered(saved) if lost else []), False
                    for loss in chain(told, self._done(batches[run.step + len(told) - begin : until - begin])):
                        if run.step + 1 == until:
                            take_state(run.model, run.trainer, self._all([_state_of(self._workers[0])[2]])[0])
                            saved = until
                        run.curve.losses.append(loss)
                        run.step += 1
                        yield loss
                except WorkerLost as why:
                    lost = True
                    failures = run.step, 1 + (failures[1] if failures[0] == run.step else 0)
                    if failures[1] >= ATTEMPTS:
                        raise EdBatchError(
                            f"train: a worker was lost {ATTEMPTS} times in step {run.step + 1} ({why}); the "
                            f"checkpoint in {run.folder} is of step {saved}"
                        ) from None

    def _done(self, batches: list[list[int]]) -> Iterator[float]:
        """The loss of each mini-batch, when it is done."""
        waiting: deque[list[Any]] = deque()
        for numbers in batches:
            waiting.append(self._asked(numbers))
            if len(waiting) > AHEAD:
                yield self._loss(waiting.popleft())
        while waiting:
            yield self._loss(waiting.popleft())

    def _asked(self, numbers: list[int]) -> list[Any]:
        """Have a mini-batch done; references to what all say of it."""
        self._cluster.check()
        data, samples, n = self._run.data, None, len(numbers)
        if not isinstance(data, Recipe):
            samples = [read(data, number) for number in numbers]
        try:
            sizes = map(self._size_of, numbers, samples or [None] * n)
            gradients = [
                worker.gradients.remote(
                    samples and [samples[at] for at in places], [numbers[at] for at in places], places, n
                )
                for worker, places in zip(self._workers, divided(list(sizes), self._n), strict=True)
            ]
        except Exception as error:  # of pickling
            named = ((f"sample {number}", x) for number, x in zip(numbers, samples or [], strict=False))
            raise unsendable("train", named, error) from error
        return [worker.update.remote(*gradients) for worker in self._workers]

    def _size_of(self, number: int, sample: Any) -> int:
        """The bytes of its pickle, counted once; all are alike where workers read them."""
        if number not in self._sizes:
            self._sizes[number] = len(cloudpickle.dumps(sample))
        return self._sizes[number]

    def _loss(self, updated: list[Any]) -> float:
        losses, sent, checksums = zip(*self._all(updated), strict=True)
        self._report.steps += 1
        self._report.bytes_per_step += (sum(sent) / self._n - self._report.bytes_per_step) / self._report.steps
        if len(set(checksums)) > 1:
            raise EdBatchError(
                f"train: after step {self._run.step + 1} workers have different parameters; expected machines on which "
                "the same program gives the same bits"
            )
        return losses[0]

    def _recovered(self, saved: int) -> list[float]:
        """Have workers in the place of those that are lost, and all go on alike.

        Returns:
            The losses of steps that were done and not told yet.
        """
        if self._workers:
            self._report.replaced += 1
        else:
            self._send_job()
        found = []
        for at, (step, losses, state) in enumerate([_state_of(worker) for worker in self._workers]):
            try:
                found.append((*self._cluster.results([step, losses], min(self._timeout, TO_ANSWER)), state))
            except (WorkerLost, EdBatchError):
                self._cluster.end([self._workers[at]])
                self._workers[at] = None
        there = [worker for worker in self._workers if worker is not None]
        self._workers = there + self._cluster.new(self._n - len(there), Worker, self._job)
        if found:
            step, losses, state = max(found, key=lambda one: one[0])
        else:
            self._go_back(saved)
            step, losses, state = saved, {}, ray().put(state_of(self._run.model, self._run.trainer))
        self._report.processes[:] = self._all([worker.begin.remote(state, step) for worker in self._workers])
        return [losses[number] for number in range(self._run.step + 1, step + 1)]

    def _send_job(self) -> None:
        run = self._run
        data = run.data if isinstance(run.data, Recipe) else None
        job = Job(run.model, run.trainer, run.losses, run.policy, self._mean, self._cluster.options(self._n), data)
        named = {"model": run.model, "optimizer": run.trainer, "function of losses": run.losses, "data": data}
        self._job = self._cluster.put(job, named)

    def _all(self, refs: list[Any]) -> list[Any]:
        return self._cluster.results(refs, self._timeout)

    def _go_back(self, step: int) -> None:
        """To where the run's own model is."""
        self._run.step = step
        del self._run.curve.losses[step:]


def _state_of(worker: Any) -> Any:
    """References to its step, losses and state."""
    return worker.state.options(num_returns=3).remote()


def divided(sizes: Sequence[int], n: int) -> list[list[int]]:
    """Places of samples, ascending, of n parts of about the same size: the largest first, each to the smallest part.

    The parts follow from the sizes alone. A largest part is at most 4/3 of what it must be (Graham 1969).

    Example:
        >>> divided([5, 1, 4, 3, 3], 2)
        [[0, 4], [1, 2, 3]]
    """
    loads = [0] * n
    parts: list[list[int]] = [[] for _ in range(n)]
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        part = loads.index(min(loads))
        parts[part].append(place)
        loads[part] += sizes[place]
    return [sorted(part) for part in parts]
