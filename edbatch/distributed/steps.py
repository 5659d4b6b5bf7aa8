"""Mini-batches of a run, done by a team of workers: sent, waited for, and done again where workers are lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from edbatch.base.later import Later
from edbatch.distributed.failures import failed, unsendable
from edbatch.distributed.job import Job, Part, state_of, take_state
from edbatch.distributed.network import Network
from edbatch.distributed.ray import ray
from edbatch.distributed.report import Report
from edbatch.distributed.room import Room
from edbatch.distributed.samples import Recipe, Samples, read
from edbatch.distributed.shares import Sizes, divided
from edbatch.distributed.team import Team
from edbatch.distributed.waiting import WorkerLost
from edbatch.errors import EdBatchError
from edbatch.graph.options import current_options
from edbatch.kernels.cpu import cores
from edbatch.runtime.graph import Graph
from edbatch.training.mini_batch import total_of
from edbatch.training.run import Run

cloudpickle = Later("ray.cloudpickle")

ATTEMPTS = 4  # at one step
CHECK_EVERY = 100  # steps between two looks at whether all workers have the same parameters
TO_COUNT = 1024  # samples that are counted by one worker before it is waited for


@dataclass(frozen=True)
class Way:
    """Arguments of `train`, which explains them."""

    workers: int
    address: str | None
    nodes: Callable[[Any], int] | Sequence[int] | None
    mean: bool
    timeout: float
    network: Network | None


class Steps:
    """What `Run.epochs_by` takes.

    Args:
        run: whose mini-batches they are.
        way: how.
        room: for workers.
        report: of what they take.
        processes: becomes those of the workers.
    """

    def __init__(self, run: Run, way: Way, room: Room, report: Report, processes: list[int]) -> None:
        self._run, self._way, self._room, self._report = run, way, room, report
        self._processes = processes
        self._team: Team | None = None
        self._sizes: Sizes | None = None

    def end(self) -> None:
        """End the workers."""
        if self._team is not None:
            self._team.close()
            self._team = None
            self._processes.clear()

    def evaluate(self) -> Mapping[str, float]:
        """What is measured after an epoch, with the run's own model."""
        if self._run.evaluate is None:
            return {}
        try:
            return self._run.evaluate()
        except Exception as error:
            raise failed("train: evaluate", error) from error

    def record(self, numbers: list[int]) -> Graph:
        """A mini-batch to learn a policy from, recorded here."""
        run = self._run
        samples = Samples([read(run.data, number) for number in numbers], numbers, range(len(numbers)))
        try:
            with Graph(policy=run.policy, dtype=run.model.dtype) as graph:
                total_of(run.losses, samples)
        except Exception as error:
            raise failed(f"train: losses of {samples.place}", error) from error
        return graph

    def steps(self, batches: list[list[int]]) -> Generator[float]:
        """Mini-batches up to each checkpoint: there the run's own model becomes what the workers have."""
        while batches:
            n = min(len(batches), self._run.save_every - self._run.step % self._run.save_every)
            yield from self._until_checkpoint(batches[:n])
            batches = batches[n:]

    def _until_checkpoint(self, batches: list[list[int]]) -> Generator[float]:
        run = self._run
        first, end = run.step, run.step + len(batches)
        failures, lost = (first, 0), False
        try:
            if self._team is None:
                self._begin()
            while run.step < end:
                try:
                    if lost:
                        yield from self._recovered(first, end)
                        lost = False
                    for loss in self._done(batches[run.step - first :]):
                        if run.step + 1 == end:
                            self._fetch()
                        self._note(loss)
                        yield loss
                except WorkerLost as why:
                    lost = True
                    failures = run.step, 1 + (failures[1] if failures[0] == run.step else 0)
                    if failures[1] >= ATTEMPTS:
                        raise EdBatchError(
                            f"train: {ATTEMPTS} times a worker was lost in step {run.step + 1} ({why}); the "
                            f"checkpoint in {run.folder} is of step {first}"
                        ) from None
        finally:
            if run.step < end:
                self._go_back(first)

    def _done(self, batches: list[list[int]]) -> Iterator[float]:
        assert self._team is not None
        if isinstance(self._run.data, Recipe):
            self._count(batches)
        for done in self._team.steps(map(self._divided, batches), self._run.step):
            self._report.note(done)
            sums = {x.checksum for x in done}
            if len(sums) > 1:
                raise EdBatchError(
                    f"train: after step {self._run.step + 1} workers have different parameters; expected machines on "
                    "which the same program gives the same bits"
                )
            yield done[0].loss

    def _recovered(self, first: int, end: int) -> Iterator[float]:
        """Replace workers that are lost; the losses of steps that were done and not told yet."""
        run, team = self._run, self._team
        assert team is not None
        self._report.replaced += 1
        found = team.recover()
        if found is None:
            self._go_back(first)
            team.begin(ray().put(state_of(run.model, run.trainer)), first)
            return
        step, losses, state = found
        team.begin(state, step)
        while run.step < step:
            if run.step + 1 == end:
                self._fetch()
            self._note(losses[run.step + 1])
            yield losses[run.step]

    def _begin(self) -> None:
        """Have workers, each with the model as it is now."""
        run, way = self._run, self._way
        options = asdict(current_options())
        if not options["threads"] and not cores.asked() and way.address is None:
            options["threads"] = max(1, cores.available() // way.workers)  # of this machine, for each its share
        job = Job(run.model, run.trainer, run.losses, run.policy, way.mean, options, way.network, CHECK_EVERY)
        if isinstance(run.data, Recipe):
            job.data, job.nodes = run.data, way.nodes if callable(way.nodes) else None
        try:
            sent = ray().put(cloudpickle.dumps(job))
        except Exception as error:
            named = {"model": run.model, "optimizer": run.trainer, "function of losses": run.losses, "data": job.data}
            things = ((f"the {name}, with all that it refers to,", thing) for name, thing in named.items())
            raise unsendable("train", things, error) from error
        self._sizes = Sizes(run.losses, way.nodes, run.model.dtype, run.policy)
        self._team = Team(sent, way.workers, self._room, way.timeout)
        self._team.processes = self._processes
        try:
            self._team.begin(ray().put(state_of(run.model, run.trainer)), run.step)
        except WorkerLost as lost:
            raise EdBatchError(f"train: workers cannot begin ({lost})") from None

    def _count(self, batches: list[list[int]]) -> None:
        """Have the workers count samples of mini-batches, so that they are read there and not here."""
        assert self._sizes is not None
        assert self._team is not None
        left = self._sizes.unknown(number for numbers in batches for number in numbers)
        for at in range(0, len(left), size := TO_COUNT * self._way.workers):
            numbers = left[at : at + size]
            self._sizes.know(numbers, self._team.count(numbers))

    def _divided(self, numbers: list[int]) -> list[Part]:
        """Of a mini-batch each worker's part."""
        assert self._sizes is not None
        data = self._run.data
        lazy = isinstance(data, Recipe)
        samples = [] if lazy else [read(data, number) for number in numbers]
        given = partial(read, data) if lazy else dict(zip(numbers, samples, strict=True)).__getitem__
        sizes = [self._sizes.of(number, partial(given, number)) for number in numbers]
        return [
            Part(None if lazy else [samples[at] for at in places], [numbers[at] for at in places], places, len(numbers))
            for places in divided(sizes, self._way.workers)
        ]

    def _fetch(self) -> None:
        assert self._team is not None
        take_state(self._run.model, self._run.trainer, self._team.state())

    def _note(self, loss: float) -> None:
        self._run.curve.losses.append(loss)
        self._run.step += 1

    def _go_back(self, step: int) -> None:
        """To where the run's own model is."""
        self._run.step = step
        del self._run.curve.losses[step:]
