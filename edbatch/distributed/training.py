"""`train`: what `Run.epochs` does, with the gradients of every mini-batch computed by several workers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Self

from edbatch.base.numbers import checked_integer
from edbatch.distributed.cluster import checked, cluster
from edbatch.distributed.team import Report, Team
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.training.run import Doing, Run

LEAST_STORE = 160 * 2**20  # bytes of shared memory; Ray needs 75 MiB


def train(
    run: Run, epochs: int, workers: int = 2, *, address: str | None = None, mean: bool = False, timeout: float = 300.0
) -> Training:
    """Train until so many epochs are done, as `run.epochs(epochs)` does, with gradients by several workers.

    Each worker has the model and the optimizer. Of every mini-batch, which is the one that `run.epochs` would have, it
    gets a part, of about as many bytes of pickled samples as the others'; gradients are added up; all make the same
    update. So the parameters are those of one process, but for rounding, whatever the number of workers (masks of
    `dropout` follow from the place of the sample in the mini-batch, and are others than those of `run.epochs`).
    Samples are read here, one mini-batch ahead, and sent to who needs them; or read by who needs them, see `Recipe`.

    The policy is loaded once, and sent to all. `run.evaluate` is called here, with the model of then.
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
        mean: the function `losses` gives means over the samples it is given, not losses to be added up: the gradient of
            a part then counts by its share of the mini-batch's samples.
        timeout: seconds that one step may take; the first compiles.

    Returns:
        An iterator over the figures of each epoch, with a `report`.

    Raises:
        EdBatchError: an argument is out of range, Ray is not installed or cannot be begun, what workers need cannot be
            pickled, too few processors of the cluster are free; `losses`, `run.evaluate`, a schedule, or what reads a
            sample raise (it names them, and the sample; the error is its cause); and as of `Run.epochs`.

    Example:
        >>> import edbatch as eb
        >>> eb.distributed.train("runs/trees", 3)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: train: run: expected an edbatch.Run, got 'runs/trees'
    """
    if not isinstance(run, Run):
        raise EdBatchError(f"train: run: expected an edbatch.Run, got {shown(run)}")
    means = checked_flag("train: mean", mean)
    epochs = checked_integer("train", "epochs", epochs)
    n, seconds = checked("train", workers, timeout)
    return Training(run, epochs, n, address, means, seconds)


class Training(Iterator[dict[str, Any]]):
    """A training by workers; see `train`. Workers begin with the first epoch that is asked for, and end with the last.

    Attributes:
        report: what it took so far.
    """

    def __init__(self, run: Run, epochs: int, workers: int, address: str | None, *rest: Any) -> None:
        self.report = Report(workers)
        self._figures = _epochs(run, epochs, address, self.report, *rest)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        return next(self._figures)

    def close(self) -> None:
        """End the workers before the last epoch is done; the run's last checkpoint stays."""
        self._figures.close()


def _epochs(run: Run, number: int, address: str | None, report: Report, *rest: Any) -> Generator[dict[str, Any]]:
    """No method of `Training`, which has it: so it ends with its last user, and not when cycles are looked for."""
    store = LEAST_STORE + 8 * report.workers * sum(x.value().nbytes for x in run.model.values())
    with cluster("train", address, report.workers, store) as found:
        team = Team(run, found, report, *rest)
        yield from run.epochs_by(Doing(team.steps, team.evaluate), number)
