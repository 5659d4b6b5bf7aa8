"""One worker: a model and an optimizer of its own, which stay what all others' are.

It does as it is told and waits for nobody: what it needs of others are arguments, which Ray has brought when a call
begins. So no two can wait for one another. It runs without Ray too, as any object does.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, sleep, thread_time, time
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from edbatch.distributed.cluster import Network
from edbatch.distributed.gradients import Layout, Piece
from edbatch.distributed.samples import Samples
from edbatch.distributed.shares import failed
from edbatch.errors import EdBatchError
from edbatch.graph import draws
from edbatch.graph.expression import Expression
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.options import options
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.training.mini_batch import Losses, total_of
from edbatch.training.trainer import Trainer

REMEMBERED = 8  # losses of steps that a driver which lost a worker asks for again


@dataclass
class Job:
    """What all workers get.

    Attributes:
        model, trainer, losses: as of `Run`.
        policy: that was learned, or loaded, once for all.
        mean: whether `losses` gives means over the samples.
        options: in force.
        network: what to wait in a reduction, beside what it takes.
        check_every: steps from one checksum of the parameters to the next.
    """

    model: ParameterCollection
    trainer: Trainer
    losses: Losses
    policy: Policy | str | os.PathLike[str] | None
    mean: bool
    options: dict[str, Any]
    network: Network | None
    check_every: int


class State(NamedTuple):
    """Of a run: parameters by name, what the trainer remembers, and what dropout will draw."""

    parameters: dict[str, np.ndarray]
    trainer: tuple[dict[str, np.ndarray], dict[str, Any]]
    draws: dict[str, int]


class Part(NamedTuple):
    """What one worker does of a mini-batch: samples, their numbers in the data, and places in the mini-batch.

    Attributes:
        of: samples of the mini-batch.
    """

    samples: list[Any]
    numbers: list[int]
    places: list[int]
    of: int


class Done(NamedTuple):
    """A step.

    Attributes:
        loss: mean of the losses.
        bytes: sent to others.
        seconds, cpu_seconds: of this worker, since it was last asked.
        nodes: of its graph.
        checksum: of its parameters; None: not computed in this step.
    """

    loss: float
    bytes: int
    seconds: float
    cpu_seconds: float
    nodes: int
    checksum: int | None


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
    """See above; calls come in the order `begin`, `record`, then `gradients`, `record`, `reduce`, `update` per step.

    Args:
        job: what all get, pickled: arrays in shared memory, as Ray's own pickles have them, cannot be written to.
        number: of this one.
        n: how many there are.
    """

    def __init__(self, job: bytes, number: int, n: int) -> None:
        self._job: Job = pickle.loads(job)
        self._number, self._n = number, n
        self._layout = Layout(self._job.model, n)
        self._options = self._job.options

    def ready(self) -> int:
        """Its process: it is there."""
        return os.getpid()

    def begin(self, state: State, step: int) -> None:
        """Go on from a state after so many steps; what was begun before is forgotten."""
        take_state(self._job.model, self._job.trainer, state)
        self._job.model.zero_grad()
        self._step, self._drawn = step, state.draws["graphs"] - step
        self._seed = state.draws["seed"]
        self._recorded: tuple[Graph, Expression, int] | None = None
        self._part: Part | None = None
        self._error: EdBatchError | None = None
        self._losses: dict[int, float] = {}
        self._own: Piece | None = None
        self._sent = self._nodes = 0
        self._clock = perf_counter(), thread_time()
        self._reads = False

    def record(self, part: Part, step: int) -> None:
        """Record what this worker does of the mini-batch after so many steps.

        While others are still at the step before: it needs no parameters. Losses that read values do; these are
        recorded in `gradients`.
        """
        self._part, self._error = part, None
        if self._reads and step != self._step:
            return
        self._record(step)
        if self._recorded is not None and step != self._step and _has_run(self._recorded[0]):
            self._reads, self._recorded = True, None

    def _record(self, step: int) -> None:
        assert self._part is not None
        samples = Samples(*self._part[:3])
        self._recorded = None
        if not len(samples):
            return
        try:
            with (
                options(**self._options),
                Graph(policy=self._job.policy, dtype=self._job.model.dtype) as graph,
            ):
                graph.first_draw = draws.first_draw(self._seed, self._drawn + step + 1)
                samples.draw_in(graph)
                total, n = total_of(self._job.losses, samples)
                if self._job.mean:
                    total = total * (len(samples) / self._part.of)
                self._recorded = graph, total, n
        except Exception as error:
            of = "a mini-batch" if samples.last is None else f"sample {samples.last}"
            self._error = failed(error, of)
            self._error.add_note("".join(traceback.format_exception(error)))

    def gradients(self) -> list[Piece | None] | Piece | None:
        """Of what was recorded, by owner; its own it keeps. For Ray, one result alone is no list."""
        if self._error is not None:
            raise self._error
        assert self._part is not None
        if self._recorded is None:
            self._record(self._step)
            if self._error is not None:
                raise self._error
        self._job.model.zero_grad()
        loss, n, self._nodes = 0.0, 0, 0
        if self._recorded is not None:
            graph, total, n = self._recorded
            with options(**self._options):
                total.backward()
                loss = float(total.value())
            if self._job.mean:  # what is added up is divided by the number of all samples
                loss, n = loss * self._part.of / n, len(self._part.samples)
            self._nodes = graph.n
            self._recorded = None
        found: list[Piece | None] = list(self._layout.pieces())
        for piece in found:
            assert piece is not None
            piece.loss, piece.n = loss, n
        self._own, found[self._number] = found[self._number], None
        self._sent = sum(piece.bytes for piece in found if piece is not None)
        return found if self._n > 1 else found[0]

    def reduce(self, *pieces: Piece | None) -> Piece:
        """The sum of what all have sent of what this one owns."""
        self._wait(pieces)
        own = self._own
        assert own is not None
        total = self._layout.added([own if piece is None else piece for piece in pieces], self._number)
        self._sent += total.bytes * (self._n - 1)
        return total

    def update(self, *pieces: Piece) -> Done:
        """Update by the sums of all; the others do the same."""
        self._wait([piece for owner, piece in enumerate(pieces) if owner != self._number])
        self._layout.take(pieces)
        with options(**self._options):
            self._job.trainer.update()
        self._step += 1
        loss = pieces[0].loss / max(pieces[0].n, 1)
        self._losses = {step: x for step, x in self._losses.items() if step > self._step - REMEMBERED}
        self._losses[self._step] = loss
        before, self._clock = self._clock, (perf_counter(), thread_time())
        wall, cpu = (now - then for now, then in zip(self._clock, before, strict=True))
        checksum = self._checksum() if self._step % self._job.check_every == 0 else None
        return Done(loss, self._sent, wall, cpu, self._nodes, checksum)

    def standing(self) -> tuple[int, dict[int, float]]:
        """Steps done, and the losses of the last."""
        return self._step, self._losses

    def state(self) -> State:
        """Of the run."""
        found = state_of(self._job.model, self._job.trainer)
        return found._replace(draws={"seed": self._seed, "graphs": self._drawn + self._step})

    def _checksum(self) -> int:
        found = 0
        for x in self._job.model.values():
            found = crc32(x.value().tobytes(), found)
        return found

    def _wait(self, pieces: Sequence[Piece | None]) -> None:
        """Until a network would have brought them."""
        come = [piece for piece in pieces if piece is not None]
        if self._job.network is not None and come:
            size = sum(piece.bytes for piece in come)
            sleep(max(0.0, max(piece.sent for piece in come) + self._job.network.seconds(size) - time()))


def _has_run(graph: Graph) -> bool:
    """Whether values were computed as it was recorded."""
    return graph.batches > 0 or bool(graph.rounds.count)
