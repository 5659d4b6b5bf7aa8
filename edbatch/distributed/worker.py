"""One worker: a model and an optimizer of its own, which stay what all others' are.

It does as it is told and waits for nobody: what it needs of others are arguments, which Ray has brought when a call
begins. So no two can wait for one another. It runs without Ray too, as any object does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from edbatch.distributed.failures import RAISED, failed, for_another_process, made_again
from edbatch.distributed.gradients import Gradients, collected, take
from edbatch.distributed.samples import Samples, read
from edbatch.graph import draws
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.options import options
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.training.mini_batch import Losses, total_of
from edbatch.training.trainer import Trainer

REMEMBERED = 8  # losses of steps that a driver which lost a worker asks for again
CHECK_EVERY = 100  # steps from one checksum of the parameters to the next


@dataclass
class Job:
    """What all workers get; `data` are the samples where workers read them, or else None."""

    model: ParameterCollection
    trainer: Trainer
    losses: Losses
    policy: Policy | str | os.PathLike[str] | None
    mean: bool
    options: dict[str, Any]
    data: Sequence[Any] | None


class State(NamedTuple):
    """Of a run: parameters by name, what the trainer remembers, and what dropout will draw."""

    parameters: dict[str, np.ndarray]
    trainer: tuple[dict[str, np.ndarray], dict[str, Any]]
    draws: dict[str, int]


def state_of(model: ParameterCollection, trainer: Trainer) -> State:
    """What a run is now."""
    return State({name: x.value() for name, x in model.items()}, trainer.state(), draws.state())


def take_state(model: ParameterCollection, trainer: Trainer, state: State) -> None:
    """Have a run be that."""
    for name, x in model.items():
        x.set_value(state.parameters[name])
    trainer.load_state(*state.trainer)
    draws.restore(state.draws)


class Worker:
    """See above; calls come in the order `begin`, then `gradients`, `update` per step. A `Job` is pickled."""

    def __init__(self, job: bytes) -> None:
        self._job: Any = job

    @for_another_process
    def begin(self, state: State, step: int) -> int:
        """Go on from a state after so many steps; its process."""
        if isinstance(self._job, bytes):
            self._job = made_again("train", self._job)
        take_state(self._job.model, self._job.trainer, state)
        self._step, self._draws = step, state.draws
        self._losses: dict[int, float] = {}
        return os.getpid()

    @for_another_process
    def gradients(self, samples: list[Any] | None, numbers: list[int], places: list[int], of: int) -> Gradients:
        """Of this worker's part of a mini-batch.

        Args:
            samples: None: the worker reads them.
            numbers: of each, in the data; and places, in the mini-batch, which has so many.
        """
        self._job.model.zero_grad()
        loss, n = 0.0, 0
        if numbers:
            if samples is None:
                samples = [read(self._job.data, number) for number in numbers]
            loss, n = self._went_back(Samples(samples, numbers, places), of)
        found = collected(self._job.model, loss, n)
        self._sent = found.bytes
        return found

    def _went_back(self, samples: Samples, of: int) -> tuple[float, int]:
        """The sum of the losses, and how many there are; the model has the gradients."""
        job = self._job
        draws.restore(self._draws)
        with options(**job.options):
            try:
                with Graph(policy=job.policy, dtype=job.model.dtype) as graph:
                    samples.draw_in(graph)
                    total, n = total_of(job.losses, samples)
                    if job.mean:
                        total = total * (len(samples) / of)
            except RAISED as error:
                raise failed(f"train: losses of {samples.place}", error) from error
            try:
                total.backward()
                loss = float(total.value())
            except RAISED as error:
                raise failed(f"train: gradients of {samples.all}", error) from error
        if job.mean:  # what is added up is divided by the number of all samples
            return loss * of / n, len(samples)
        return loss, n

    @for_another_process
    def update(self, *of_all: Gradients) -> tuple[float, int, int | None]:
        """Update by the gradients of all, in their order; the others do the same.

        Returns:
            The mean of the losses, bytes sent to others, and in every hundredth step a checksum of the parameters.
        """
        job = self._job
        take(job.model, of_all)
        try:
            with options(**job.options):
                job.trainer.update()
        except RAISED as error:
            raise failed(f"train: update {self._step + 1}", error) from error
        self._step += 1
        self._draws = {**self._draws, "graphs": self._draws["graphs"] + 1}
        loss = sum(x.loss for x in of_all) / max(sum(x.n for x in of_all), 1)
        self._losses = {step: x for step, x in self._losses.items() if step > self._step - REMEMBERED}
        self._losses[self._step] = loss
        checksum = None
        if self._step % CHECK_EVERY == 0:
            checksum = reduce(lambda found, x: crc32(x.value().tobytes(), found), job.model.values(), 0)
        return loss, self._sent * (len(of_all) - 1), checksum

    def state(self) -> tuple[int, dict[int, float], State]:
        """Steps done, the losses of the last, and the state of the run."""
        return self._step, self._losses, state_of(self._job.model, self._job.trainer)._replace(draws=self._draws)
