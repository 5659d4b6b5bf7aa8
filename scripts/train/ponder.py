"""Train a network with adaptive computation time to tell parities (Graves 2016, section 3.1), and when it knows enough.

    python -m scripts.train.ponder

The bits are made up: of each of some vectors, read one after the other, whether the number of ones in all of them so
far is odd. A run that was stopped goes on; its learning curve is runs/ponder/curve.png and .json.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import edbatch as eb
from edbatch.models import AdaptiveGRU, Classifier
from scripts.train.script import ProgramTask, Script, Source

BITS, LONGEST = 2, 5
PRICE = 0.01  # of a step, in the loss


class Bits(NamedTuple):
    """Vectors of 1 and -1, and after each whether the ones so far are odd."""

    xs: np.ndarray
    labels: list[int]


def random_bits(n: int, seed: int) -> list[Bits]:
    """`n` sequences of 1 to 5 vectors."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        bits = random.integers(0, 2, (random.integers(1, LONGEST + 1), BITS))
        found.append(Bits(2 * bits - 1, (bits.sum(axis=1).cumsum() % 2).tolist()))
    return found


def prepare(model: eb.ParameterCollection, train: list[Bits], dev: list[Bits], hidden: int) -> ProgramTask:
    """The loss of a place is a cross-entropy, and a small part of what was pondered."""
    layer, out = AdaptiveGRU(model, BITS, hidden, most=6), Classifier(model, hidden, 2)

    async def loss(sample: Bits) -> list[eb.Expression]:
        found = await layer.ponder([eb.input(x) for x in sample.xs])
        price = found.cost * (PRICE / len(sample.labels))
        return [out.cross_entropy(h, y) + price for h, y in zip(found.outputs, sample.labels, strict=True)]

    async def answer(sample: Bits) -> tuple[list[int], list[int]]:
        found = await layer.ponder([eb.input(x) for x in sample.xs])
        scores = await eb.values([out.scores(h) for h in found.outputs])
        return [int(np.argmax(of_place)) for of_place in scores], found.steps

    return ProgramTask(train, dev, loss, answer, measure)


def measure(answers: list[tuple[list[int], list[int]]], samples: list[Bits]) -> dict[str, float]:
    """How many parities are right, and the steps that a vector took."""
    pairs = [(found, sample.labels) for (found, _), sample in zip(answers, samples, strict=True)]
    right = [a == b for found, labels in pairs for a, b in zip(found, labels, strict=True)]
    steps = [count for _, counts in answers for count in counts]
    return {"accuracy": sum(right) / len(right), "steps": sum(steps) / len(steps)}


SCRIPT = Script(__doc__, "ponder", prepare, Source(random_bits), defaults={"lr": 1e-2, "hidden": 32})

if __name__ == "__main__":
    SCRIPT.main()
