"""Train a mixture of experts, of which two are asked for each sample, to tell classes that differ by region.

    python -m scripts.train.experts

The points are made up: in each of six regions of the plane, another line divides two classes. A run that was stopped
goes on; its learning curve is runs/experts/curve.png and .json.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import edbatch as eb
from edbatch.models import Classifier, MixtureOfExperts
from scripts.train.script import ProgramTask, Script, Source

REGIONS, EXPERTS, ASKED = 6, 8, 2


class Point(NamedTuple):
    """A point of the plane, and its class."""

    x: np.ndarray
    label: int


def random_points(n: int, seed: int) -> list[Point]:
    """Regions are sectors around the origin; in each, a line through its middle divides the classes."""
    random = np.random.default_rng(seed)
    angles = random.random(n) * REGIONS
    radii = 0.5 + random.random(n)
    turned = np.where(np.floor(angles) % 2 == 0, angles % 1 > 0.5, radii > 1.0)
    xs = radii[:, None] * np.stack([np.cos(angles * 2 * np.pi / REGIONS), np.sin(angles * 2 * np.pi / REGIONS)], 1)
    return [Point(x, int(label)) for x, label in zip(xs, turned, strict=True)]


class Network:
    """A layer of experts between two others."""

    def __init__(self, model: eb.ParameterCollection, hidden: int) -> None:
        self.W_in = model.add_parameters((hidden, 2), name="W_in", init=eb.init.Normal(std=1.0))
        self.b_in = model.add_parameters((hidden,), name="b_in")
        self.experts = MixtureOfExperts(model, EXPERTS, hidden, hidden, ASKED)
        self.out = Classifier(model, hidden, 2)

    @eb.cell
    def read(self, x: eb.Expression) -> eb.Expression:
        """What the experts, and the gate, are told of a point."""
        return eb.tanh(eb.affine(self.W_in, x, self.b_in))

    async def hidden(self, x: np.ndarray) -> eb.Expression:
        """What the class is told from; a program."""
        return await self.experts.mix(self.read(eb.input(x)))


def prepare(model: eb.ParameterCollection, train: list[Point], dev: list[Point], hidden: int) -> ProgramTask:
    """Which experts are asked is learned by the weights of those that were."""
    network = Network(model, hidden)

    async def loss(sample: Point) -> list[eb.Expression]:
        return [network.out.cross_entropy(await network.hidden(sample.x), sample.label)]

    async def answer(sample: Point) -> int:
        return int(np.argmax(await network.out.scores(await network.hidden(sample.x))))

    return ProgramTask(train, dev, loss, answer, measure)


def measure(answers: list[int], samples: list[Point]) -> dict[str, float]:
    """How many classes are right."""
    return {"accuracy": sum(a == sample.label for a, sample in zip(answers, samples, strict=True)) / len(samples)}


SCRIPT = Script(__doc__, "experts", prepare, Source(random_points), defaults={"lr": 5e-3})

if __name__ == "__main__":
    SCRIPT.main()
