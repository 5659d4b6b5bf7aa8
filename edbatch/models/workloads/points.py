"""Workloads over points: which expert is asked about one, and in which order many are met."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.data.random_points import LabelledPoint, Points, random_labelled_points, random_points
from edbatch.models.classifier import Classifier
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.pointer import PointerDecoder
from edbatch.models.workloads.workload import Known, Numbered, Workload

EXPERTS = 16


class ExpertClassifier(Classifier):
    """A layer of `edbatch.models.MixtureOfExperts`, of which the best is asked, and a softmax over what it says.

    Args:
        model: collection that the parameters are added to.
        inputs: coordinates of a point.
        labels: number of classes.
        dim: size of what experts say.
    """

    def __init__(self, model: eb.ParameterCollection, inputs: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.layer = MixtureOfExperts(model, EXPERTS, inputs, dim)

    async def answer(self, x: Sequence[float]) -> list[eb.Expression]:
        """Probabilities of the classes; a program."""
        return [self.probabilities(await self.layer.mix(eb.input(x)))]

    async def guided(self, x: Sequence[float], right: Sequence[int]) -> list[eb.Expression]:
        """Scores of the classes, whatever is right; a program."""
        return [self.scores(await self.layer.mix(eb.input(x)))]


class PointOrder(PointerDecoder):
    """`edbatch.models.PointerDecoder` over points of the plane that says how probable each was at every step."""

    def __init__(self, model: eb.ParameterCollection, dim: int) -> None:
        super().__init__(model, 2, dim)

    async def answer(self, points: Sequence[Sequence[float]]) -> list[eb.Expression]:
        """Probabilities of all points [points] at every step; a program."""
        return [eb.softmax(eb.concatenate(scores)) for scores in await self.step_scores(points)]

    async def guided(self, points: Sequence[Sequence[float]], right: Sequence[int]) -> list[eb.Expression]:
        """Scores of all points [points] at every step of the right order; a program."""
        return [eb.concatenate(scores) for scores in self.scores_along(points, right)]


def _know_labelled(points: list[LabelledPoint]) -> Known:
    return {"coordinates": len(points[0].x), "labels": sorted({point.label for point in points})}


def _number_labelled(points: list[LabelledPoint], known: Known) -> Numbered:
    labels = known["labels"]
    return Numbered([(point.x,) for point in points], (known["coordinates"], len(labels)), labels)


def _number_points(sets: list[Points], known: Known) -> Numbered:
    return Numbered([(one.points,) for one in sets], (), list(range(max(len(one.points) for one in sets))))


OTHERS = {
    "mixture-of-experts": Workload(
        noun="point",
        place="answer",
        files=(),
        folder=(),
        stream=None,
        generate=random_labelled_points,
        know=_know_labelled,
        numbered=_number_labelled,
        network=ExpertClassifier,
        program=True,
        right=lambda point: [point.label],
    ),
    "pointer-decoder": Workload(
        noun="set",
        place="step",
        files=(),
        folder=(),
        stream=None,
        generate=random_points,
        know=lambda sets: {},
        numbered=_number_points,
        network=PointOrder,
        program=True,
        right=lambda one: one.order,
    ),
}
