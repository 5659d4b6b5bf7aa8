"""Random points of many dimensions, to be told apart."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.data.draws import Draws


class LabelledPoint(NamedTuple):
    """A point: its coordinates, each in [-1, 1), and its class, the position of the largest of the first ones."""

    x: list[float]
    label: int


def random_labelled_points(n: int, seed: int, dimensions: int = 64, classes: int = 8) -> list[LabelledPoint]:
    """`n` points.

    Example:
        >>> point = random_labelled_points(1, seed=0, dimensions=4, classes=2)[0]
        >>> [round(x, 2) for x in point.x], point.label
        ([0.69, 0.52, -0.16, -0.48], 0)
    """
    draws = Draws(seed)
    points = [[2 * draws.fraction() - 1 for _ in range(dimensions)] for _ in range(n)]
    return [LabelledPoint(x, x.index(max(x[:classes]))) for x in points]
