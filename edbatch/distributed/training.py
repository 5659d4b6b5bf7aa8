"""`train`: what `Run.epochs` does, with the gradients of every mini-batch computed by several workers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Self

from edbatch.base.later import Later
from edbatch.base.numbers import checked_integer, is_real
from edbatch.distributed.cluster import Network, WorkerLost, cluster, ray
from edbatch.distributed.shares import Sizes, divided
from edbatch.distributed.team import Team
from edbatch.distributed.worker import Done, Job, Part, state_of, take_state
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.options import current_options
from edbatch.kernels.cpu import cores
from edbatch.training.run import Run

cloudpickle = Later("ray.cloudpickle")

MOST = 1024  # workers: more are a slip of the pen
ATTEMPTS = 4  # at one step
CHECK_EVERY = 100  # steps between two looks at whether all workers have the same parameters
LEAST_STORE = 160 * 2**20  # bytes of shared memory; Ray needs 75 MiB


def train(
    run: Run,
    epochs: int,
    workers: int = 2,
    *,
    address: str | None = None,
    nodes: Callable[[Any], int] | None = None,
    mean: bool = False,
    timeout: float = 300.0,
    network: Network | None = None,
) -> Training:
    """Train until so many epochs are done, as `run.epochs(epochs)` does, with gradients by several workers.

    Each worker has the model and the optimizer. Of every mini-batch, which is the one that `run.epochs` would have, it
    gets a part with about as many nodes as the others', a mini-batch ahead; gradients are added up; all make the same
    update. So the parameters are those of one process, but for rounding, whatever the number of workers (masks of
    `dropout` follow from the place of the sample in the mini-batch, and are others than those of `run.epochs`). Samples
    are read here, one mini-batch ahead, and sent to who needs them: `run.data` may read files.

    The policy is learned, or loaded, once, and sent to all. `run.evaluate` is called here, with the model of then.
    Checkpoints are those of the run: what began with workers may go on without, and with another number of them.

    A worker that is killed, or hangs, is replaced, and the run goes on after the last step that was done. If all are
    gone it goes on from the last checkpoint. What an error or an interrupt ends is where its last checkpoint is.

    Args:
        run: model, optimizer, losses, data, mini-batches, folder. The model, the optimizer and the function `losses`
            (with what it refers to) are pickled.
        epochs: those included that were done before.
        workers: processes that compute.
        address: of a Ray cluster that runs, as "10.0.0.1:6379", with EdBatch installed; None: Ray begins on this
            machine, for these workers, and ends with the training. A cluster that the program has begun (`ray.init`)
            is used as it is.
        nodes: from a sample its size; None: the nodes of its graph are counted, once.
        mean: the function `losses` gives means over the samples it is given, not losses to be added up: the gradient of
            a part then counts by its share of the mini-batch's samples.
        timeout: seconds that one step may take; the first compiles.
        network: what to wait in reductions, to see what a network would cost.

    Returns:
        An iterator over the figures of each epoch, with a `report`.

    Raises:
        EdBatchError: an argument is out of range, Ray is not installed or cannot be begun, what workers need cannot be
            pickled; and as of `Run.epochs`, an error of `losses` with the sample's number.

    Example:
        >>> import edbatch as eb
        >>> eb.distributed.train("runs/trees", 3)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: train: run: expected an edbatch.Run, got 'runs/trees'
    """
    if not isinstance(run, Run):
        raise EdBatchError(f"train: run: expected an edbatch.Run, got {shown(run)}")
    if nodes is not None and not callable(nodes):
        raise EdBatchError(f"train: nodes: expected a function of a sample, got {shown(nodes)}")
    if not is_real(timeout) or not timeout > 0:
        raise EdBatchError(f"train: timeout: expected seconds, got {shown(timeout)}")
    if not isinstance(network, Network | None):
        raise EdBatchError(f"train: network: expected an edbatch.distributed.Network, got {shown(network)}")
    means = checked_flag("train: mean", mean)
    n = checked_integer("train", "workers", workers, most=MOST)
    epochs = checked_integer("train", "epochs", epochs)
    ray()
    return Training(run, epochs, _Way(n, address, nodes, means, float(timeout), network))


@dataclass(frozen=True)
class _Way:
    """Arguments of `train`."""

    workers: int
    address: str | None
    nodes: Callable[[Any], int] | None
    mean: bool
    timeout: float
    network: Network | None


@dataclass
class Report:
    """What a training by workers took so far.

    Attributes:
        workers: how many.
        steps: done.
        replaced: workers that were lost.
        bytes_per_step: sent by one worker to others, on average.
        seconds: of each step; and cpu_seconds, of the worker whose processor took longest.
        balance: nodes of the largest part of a mini-batch, over the average of its parts, on average.
    """

    workers: int
    steps: int = 0
    replaced: int = 0
    bytes_per_step: float = 0.0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    balance: float = 0.0

    def note(self, done: list[Done]) -> None:
        """Add a step."""
        self.steps += 1
        self.bytes_per_step += (sum(x.bytes for x in done) / len(done) - self.bytes_per_step) / self.steps
        self.seconds.append(max(x.seconds for x in done))
        self.cpu_seconds.append(max(x.cpu_seconds for x in done))
        nodes = [x.nodes for x in done]
        self.balance += (max(nodes) * len(nodes) / max(sum(nodes), 1) - self.balance) / self.steps

    def __str__(self) -> str:
        return (
            f"{self.workers} workers, {self.steps:,} steps, {1e3 * median(self.seconds or [0]):.1f} ms each; "
            f"{self.bytes_per_step / 2**20:.2f} MiB sent per step and worker; largest part {self.balance:.3f} of the "
            f"average; {self.replaced} workers replaced"
        )


class Training(Iterator[dict[str, Any]]):
    """A training by workers; see `train`. Workers begin with the first epoch that is asked for, and end with the last.

    Attributes:
        report: what it took so far.
    """

    def __init__(self, run: Run, epochs: int, way: _Way) -> None:
        self.report = Report(way.workers)
        self._run, self._way = run, way
        self._team: Team | None = None
        self._sizes: Sizes | None = None
        self._figures = self._epochs(epochs)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        return next(self._figures)

    def close(self) -> None:
        """End the workers before the last epoch is done; the run's last checkpoint stays."""
        self._figures.close()

    @property
    def processes(self) -> list[int]:
        """The processes of the workers, each on its machine; none before the first step."""
        return [] if self._team is None else self._team.processes

    def _epochs(self, number: int) -> Generator[dict[str, Any]]:
        way, run = self._way, self._run
        size = sum(x.value().nbytes for x in run.model.values())
        with ExitStack() as open:
            open.enter_context(cluster("train", way.address, way.workers, LEAST_STORE + 8 * way.workers * size))
            open.callback(self._end)
            yield from run.epochs_by(self._steps, number)

    def _end(self) -> None:
        if self._team is not None:
            self._team.close()
            self._team = None

    def _steps(self, batches: list[list[int]]) -> Generator[float]:
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
        for done in self._team.steps(map(self._divided, batches), self._run.step):
            self.report.note(done)
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
        self.report.replaced += 1
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
        try:
            sent = ray().put(cloudpickle.dumps(job))
        except Exception as error:
            raise EdBatchError(
                f"train: the model, the optimizer and the function of losses, with all that it refers to, are sent to "
                f"workers, and cannot be pickled ({type(error).__name__}: {error})"
            ) from None
        self._sizes = Sizes(run.losses, way.nodes, run.model.dtype, run.policy)
        self._team = Team(sent, way.workers, way.timeout)
        try:
            self._team.begin(ray().put(state_of(run.model, run.trainer)), run.step)
        except WorkerLost as lost:
            raise EdBatchError(f"train: workers cannot begin ({lost})") from None

    def _divided(self, numbers: list[int]) -> list[Part]:
        """Of a mini-batch each worker's part."""
        assert self._sizes is not None
        samples = []
        for number in numbers:
            try:
                samples.append(self._run.data[number])
            except Exception as error:
                raise EdBatchError(
                    f"train: sample {number} cannot be read ({type(error).__name__}: {error})"
                ) from error
        sizes = [self._sizes.of(*pair) for pair in zip(numbers, samples, strict=True)]
        return [
            Part([samples[at] for at in places], [numbers[at] for at in places], places, len(numbers))
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
