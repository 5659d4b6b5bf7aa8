"""What the sides of a contest have in common, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb

# How far float32 may be off: of a probability, and of a gradient beside the largest of its parameter.
VALUES, GRADIENTS = 1e-4, 2e-3


class Point(NamedTuple):
    """What sides have in common; see `contest`."""

    hidden: int
    batch: int
    training: bool
    threads: int
    seed: int
    compiled: bool

    def mixed(self, step: Callable[[list[Any]], Any], samples: Sequence[Any]) -> Callable[[], None]:
        """All samples, mini-batch by mini-batch, in another order each time, which is that of all sides."""
        samples, random = list(samples), Random(self.seed)

        def run() -> None:
            random.shuffle(samples)
            for at in range(0, len(samples), self.batch):
                step(samples[at : at + self.batch])

        return run


class Answer(NamedTuple):
    """What a side says of the first mini-batch.

    Attributes:
        probabilities: at every place, sample by sample [places, labels].
        gradients: by parameter, if the contest is one of training; of tables the rows that were looked up.
    """

    probabilities: np.ndarray
    gradients: dict[str, np.ndarray]


@dataclass(frozen=True)
class Contest:
    """The sides of one point, ready to be timed; `check` comes first.

    Attributes:
        workload: its name in `edbatch.models.workloads`.
        samples: of one call.
        sides: by name, what runs the same mini-batches once, samples mixed anew: forward to all probabilities, or a
            step of training (forward, backward, update by gradient descent).
        missing: by name of a side that there is not, why.
        answers: by name of a side, what it says of the first mini-batch.
    """

    workload: str
    samples: int
    sides: dict[str, Callable[[], None]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Callable[[], Answer]] = field(default_factory=dict)

    def check(self) -> None:
        """Compare what all sides say of the first mini-batch. It also compiles what they need, and learns the policy.

        Raises:
            EdBatchError: a side differs from EdBatch's, and where.
        """
        expected = self.answers["edbatch"]()
        for name, answer in self.answers.items():
            if name != "edbatch":
                found = answer()
                place = f"{self.workload}: {name}"
                _compare(f"{place}, probabilities", found.probabilities, expected.probabilities, VALUES)
                if found.gradients.keys() != expected.gradients.keys():
                    other = sorted(found.gradients.keys() ^ expected.gradients.keys())
                    raise eb.EdBatchError(f"{place}: expected gradients of the same parameters, differs in {other}")
                for parameter, gradient in found.gradients.items():
                    known = expected.gradients[parameter]
                    most = GRADIENTS * max(float(np.abs(known).max(initial=0)), 1e-6)
                    _compare(f"{place}, gradient of {parameter}", gradient, known, most)


def _compare(place: str, found: np.ndarray, expected: np.ndarray, most: float) -> None:
    if found.shape != expected.shape:
        raise eb.EdBatchError(f"{place}: expected shape {expected.shape}, got {found.shape}")
    off = np.abs(found - expected)
    if not (off <= most).all():  # also where it is not a number
        at = np.unravel_index(np.where(np.isnan(off), np.inf, off).argmax(), off.shape)
        where = f"{place}, at {tuple(map(int, at))}"
        raise eb.EdBatchError(f"{where}: expected {expected[at]:.6g}, give or take {most:.2g}; got {found[at]:.6g}")
