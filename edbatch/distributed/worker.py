"""One worker: a model and an optimizer of its own, which stay what all others' are.

It does as it is told and waits for nobody: what it needs of others are arguments, which Ray has brought when a call
begins. So no two can wait for one another. It runs without Ray too, as any object does.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from functools import partial
from time import perf_counter, sleep, thread_time, time
from zlib import crc32

from edbatch.distributed.failures import RAISED, failed, to_send
from edbatch.distributed.gradients import Layout, Piece
from edbatch.distributed.job import Done, Job, Part, State, state_of, take_state
from edbatch.distributed.samples import Samples, read
from edbatch.distributed.shares import Sizes
from edbatch.errors import EdBatchError
from edbatch.graph import draws
from edbatch.graph.expression import Expression
from edbatch.graph.model.writes import unfollow
from edbatch.graph.options import options
from edbatch.runtime.graph import Graph
from edbatch.training.mini_batch import total_of

REMEMBERED = 8  # losses of steps that a driver which lost a worker asks for again


class Worker:
    """See above; calls come in the order `begin`, `record`, then `gradients`, `record`, `reduce`, `update` per step.

    Args:
        job: what all get, pickled: arrays in shared memory, as Ray's own pickles have them, cannot be written to.
        number: of this one.
        n: how many there are.
    """

    def __init__(self, job: bytes, number: int, n: int) -> None:
        self._given = job
        self._number, self._n = number, n

    def ready(self) -> int:
        """Its process: it is there, and knows what to do.

        Raises:
            EdBatchError: what it got cannot be made again here.
        """
        if not self._given:  # it was asked before
            return os.getpid()
        try:
            self._job: Job = pickle.loads(self._given)
        except Exception as error:
            place = "train: what is sent, made again in a worker (which needs the same modules)"
            raise to_send(failed(place, error), error) from None
        self._given = b""
        self._layout = Layout(self._job.model, self._n)
        self._options = self._job.options
        job = self._job
        self._sizes = Sizes(job.losses, job.nodes, job.model.dtype, job.policy)
        return os.getpid()

    def count(self, numbers: Sequence[int]) -> list[int]:
        """The sizes of samples, by their numbers; it reads them."""
        data = self._job.data
        assert data is not None
        try:
            with options(**self._options):
                return [self._sizes.of(number, partial(read, data, number)) for number in numbers]
        except EdBatchError as error:
            raise to_send(error, error.__cause__) from None

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
        self._recorded = None
        given, numbers, places, of = self._part
        if not numbers:
            return
        try:
            if given is None:
                assert self._job.data is not None
                given = [read(self._job.data, number) for number in numbers]
            samples = Samples(given, numbers, places)
        except EdBatchError as error:
            self._error = to_send(error, error.__cause__)
            return
        try:
            with (
                options(**self._options),
                Graph(policy=self._job.policy, dtype=self._job.model.dtype) as graph,
            ):
                unfollow(graph)  # recorded before the parameters are those that it will be computed with
                graph.first_draw = draws.first_draw(self._seed, self._drawn + step + 1)
                samples.draw_in(graph)
                total, n = total_of(self._job.losses, samples)
                if self._job.mean:
                    total = total * (len(samples) / of)
                self._recorded = graph, total, n
        except RAISED as error:
            self._error = to_send(failed(f"train: losses of {samples.place}", error), error)

    def gradients(self) -> list[Piece | None] | Piece | None:
        """Of what was recorded, by owner; its own it keeps. For Ray, one result alone is no list."""
        if self._error is not None:
            raise self._error
        assert self._part is not None
        if self._recorded is None:
            self._record(self._step)
            if self._error is not None:
                raise self._error
        self._nodes = 0
        self._job.model.zero_grad()
        loss, n = self._went_back() if self._recorded is not None else (0.0, 0)
        found: list[Piece | None] = list(self._layout.pieces())
        for piece in found:
            assert piece is not None
            piece.loss, piece.n = loss, n
        self._own, found[self._number] = found[self._number], None
        self._sent = sum(piece.bytes for piece in found if piece is not None)
        return found if self._n > 1 else found[0]

    def _went_back(self) -> tuple[float, int]:
        """The sum of the losses, and how many there are, of what was recorded; the model has the gradients."""
        assert self._recorded is not None
        assert self._part is not None
        (graph, total, n), self._recorded = self._recorded, None
        try:
            with options(**self._options):
                total.backward()
                loss = float(total.value())
        except RAISED as error:
            place = f"train: gradients of {len(self._part.numbers)} samples, {self._part.numbers[0]} among them"
            raise to_send(failed(place, error), error) from None
        self._nodes = graph.n
        if self._job.mean:  # what is added up is divided by the number of all samples
            return loss * self._part.of / n, len(self._part.numbers)
        return loss, n

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
        try:
            with options(**self._options):
                self._job.trainer.update()
        except RAISED as error:
            raise to_send(failed(f"train: update {self._step + 1}", error), error) from None
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
