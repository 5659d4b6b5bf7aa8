"""EdBatch and all its peers on the same mini-batches: the sides of one point, checked before they are timed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import edbatch as eb
from edbatch.base.later import Later
from edbatch.base.numbers import checked_integer
from edbatch.experiments.mini_batches import as_tuples
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.sides import Answer, Contest, Point
from edbatch.experiments.peers.tasks import TASKS

in_torch = Later("edbatch.experiments.peers.torch_sides")

OWN: dict[str, dict[str, Any]] = {
    "edbatch": {},
    "edbatch replayed": {"replays": True},
    "edbatch unbatched": {"policy": "none"},
}
PASSES = 64  # samples of a call, at most, but for at least one mini-batch
MOST_PASSES = 8


def contest(
    workload: str,
    hidden: int,
    batch: int,
    *,
    data: Path | None,
    training: bool,
    threads: int = 1,
    seed: int = 0,
    compiled: bool = True,
) -> Contest:
    """EdBatch, recorded, replayed and unbatched, and PyTorch, per sample and batched by hand, of one workload.

    What PyTorch's networks know of a sample (its levels, its positions) is found before the clock runs; indices of a
    mini-batch are made in the time of a call, as EdBatch's graph is.

    Args:
        workload: one of ED-Batch's nine.
        hidden: size of states.
        batch: samples of a mini-batch.
        data: the folder with the real data; None: samples are made up.
        training: steps of training, else forward runs.
        threads: of each side.
        seed: of parameters, and of how samples are mixed.
        compiled: whether there are sides that go through `torch.compile`, which takes some minutes.

    Raises:
        EdBatchError: no such workload, a size that is no positive integer, or fewer samples than a mini-batch has.

    Example:
        >>> from edbatch.experiments.peers import contest
        >>> made = contest("lattice-gru", hidden=4, batch=2, data=None, training=False, compiled=False)
        >>> made.check()  # raises an error if any two differ
        >>> made.sides["edbatch"]()
        >>> sorted(made.sides)[:3], made.samples
        (['edbatch', 'edbatch replayed', 'edbatch unbatched'], 16)
    """
    if workload not in TASKS:
        raise eb.EdBatchError(f"contest: workload={workload!r}; expected one of {', '.join(TASKS)}")
    for name, given in (("hidden", hidden), ("batch", batch), ("threads", threads)):
        checked_integer("contest", name, given)
    passes = min(MOST_PASSES, max(1, PASSES // batch))
    task = TASKS[workload](data, passes * batch)
    passes = min(passes, len(task.samples) // batch)
    if not passes:
        raise eb.EdBatchError(f"contest: batch={batch}; expected at most {len(task.samples)}, as there are samples")
    task.samples = task.samples[: passes * batch]
    found = Contest(workload, passes * batch)
    point = Point(hidden, batch, training, threads, seed, compiled)
    for name, options in OWN.items():
        own = Own(task, hidden, seed=seed, **options)
        found.answers[name] = partial(_answer, own, task.samples[:batch], point)
        samples = [as_tuples(sample) for sample in task.samples]
        found.sides[name] = point.mixed(partial(_run, own, point), samples)
    try:
        in_torch.add(found, task, point)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        why = "PyTorch is not installed: pip install 'edbatch[bench]'"
        found.missing.update(dict.fromkeys(("pytorch per sample", "pytorch by hand"), why))
    return found


def _run(own: Own, point: Point, samples: Sequence[Any]) -> None:
    with eb.options(threads=point.threads):
        (own.step if point.training else own.forward)(samples)


def _answer(own: Own, samples: Sequence[Any], point: Point) -> Answer:
    samples = list(map(as_tuples, samples))
    with eb.options(threads=point.threads):
        return Answer(own.values(samples), own.gradients(samples) if point.training else {})
