"""One mini-batch by several sides: checked to give the same numbers, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.later import Later
from edbatch.experiments.experiment import Row, Setting
from edbatch.experiments.measure import Runs, interleaved

peers = Later("edbatch.experiments.peers")

NOT_COMPILED = "torch.compile takes minutes a point, and is left out here"
TOLERANCE = 2e-3  # of float32, beside the largest of the values

Side = Callable[[], Any]


def timed(sides: Mapping[str, Side], setting: Setting) -> dict[str, Runs]:
    """Sides in turns, for as long as the setting wants."""
    return interleaved(sides, setting.rounds, limit=setting.limit)


def rates(runs: Mapping[str, Runs], samples: int) -> list[Row]:
    """Samples a second of the thread's processor time, so that what else runs counts less; and both times."""
    return [{"side": name, "samples/s": samples / (of.ms()["CPU ms"] / 1e3), **of.ms()} for name, of in runs.items()]


def contested(workload: str, hidden: int, batch: int, setting: Setting, *, training: bool) -> list[Row]:
    """Rows of one of the nine workloads, by EdBatch and by all peers that there are.

    Raises:
        EdBatchError: sides differ in values or gradients.
    """
    found = peers.contest(workload, hidden, batch, data=setting.folder, training=training, compiled=False)
    found.check()
    absent = {name: NOT_COMPILED if name.endswith("compiled") else why for name, why in found.missing.items()}
    return [*rates(timed(found.sides, setting), found.samples), *missing(absent)]


def missing(sides: Mapping[str, str]) -> list[Row]:
    """Rows of sides that have no numbers, with the reason."""
    return [{"side": name, "missing": why} for name, why in sides.items()]


def agree(values: Mapping[str, Any], what: str) -> None:
    """Check that all sides have the same numbers.

    Args:
        values: by side.
        what: they are, for the message.

    Raises:
        EdBatchError: one differs from the first; the message names both.

    Example:
        >>> agree({"a": [1.0, 2.0], "b": [1.0, 2.0001]}, "the loss")
        >>> agree({"a": 1.0, "b": 1.5}, "the loss")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: the loss: b differs from a by 0.5, at most 1; nothing was timed
    """
    (first, wanted), *others = ((name, np.asarray(value, dtype=np.float64)) for name, value in values.items())
    most = float(np.abs(wanted).max())
    for name, value in others:
        difference = float(np.abs(value - wanted).max())
        if not difference <= TOLERANCE * most:
            raise eb.EdBatchError(
                f"{what}: {name} differs from {first} by {difference:.3g}, at most {most:.3g}; nothing was timed"
            )


@dataclass
class Task:
    """A model over one mini-batch, by EdBatch.

    Attributes:
        model: its parameters.
        loss: of one sample, records it.
        samples: of the mini-batch.
        policy: how it is batched.
        training: whether gradients are computed, too.
        checked: a parameter whose gradient is compared.
    """

    model: eb.ParameterCollection
    loss: Callable[[Any], eb.Expression]
    samples: Sequence[Any]
    policy: eb.Policy | str
    training: bool
    checked: eb.Parameter

    def sides(self) -> dict[str, Side]:
        """As it comes; of samples that were recorded before; without batching."""
        replayed = eb.replay(self.loss)
        return {
            "edbatch": lambda: self.run(self.policy, self.loss),
            "edbatch replayed": lambda: self.run(self.policy, replayed),
            "edbatch unbatched": lambda: self.run("none", self.loss),
        }

    def run(self, policy: eb.Policy | str, loss: Callable[[Any], eb.Expression]) -> dict[str, float]:
        """The loss, and the seconds of recording it."""
        start = thread_time()
        with eb.Graph(policy=policy):
            total = eb.sum([loss(sample) for sample in self.samples])
        recorded = thread_time() - start
        if self.training:
            self.model.zero_grad()
            total.backward()
        return {"loss": float(total.value()), "construction": recorded}

    def check(self, others: Mapping[str, Callable[[], tuple[float, Any]]]) -> None:
        """Check all sides, and others, which return the loss and, in training, the gradient of `checked`.

        Raises:
            EdBatchError: two differ.
        """
        losses, gradients = {}, {}
        for name, side in self.sides().items():
            losses[name] = side()["loss"]
            gradients[name] = self.checked.grad() if self.training else 0.0
        for name, other in others.items():
            losses[name], gradients[name] = other()
        agree(losses, "the loss")
        if self.training:
            agree(gradients, f"the gradient of {self.checked.name}")
