"""Made-up points: of the plane, to be put in an order, and of many dimensions, to be told apart."""

from __future__ import annotations

from math import atan2
from random import Random
from typing import NamedTuple


class Points(NamedTuple):
    """Points of the unit square, and the order in which one meets them going around its middle.

    Attributes:
        points: two coordinates of each.
        order: positions in `points`, by their angle.
    """

    points: list[tuple[float, float]]
    order: list[int]


class LabelledPoint(NamedTuple):
    """A point of any number of dimensions, each coordinate in [-1, 1), and its class.

    Attributes:
        x: the coordinates.
        label: which of the first coordinates is the largest.
    """

    x: list[float]
    label: int


def random_points(n: int, seed: int) -> list[Points]:
    """`n` made-up sets of 5 to 20 points, as many as pointer networks were tried on (Vinyals et al. 2015).

    Equal seeds give equal points, in every version of Python; fewer sets are the first of more.

    Example:
        >>> points = random_points(1, seed=0)[0]
        >>> len(points.points), sorted(points.order) == list(range(len(points.points)))
        (18, True)
    """
    random = Random(seed)
    found = []
    for _ in range(n):
        points = [(random.random(), random.random()) for _ in range(5 + int(16 * random.random()))]
        angles = [atan2(y - 0.5, x - 0.5) for x, y in points]
        found.append(Points(points, sorted(range(len(points)), key=angles.__getitem__)))
    return found


def random_labelled_points(n: int, seed: int, dimensions: int = 64, classes: int = 8) -> list[LabelledPoint]:
    """`n` made-up points. Equal seeds give equal points, in every version of Python; fewer are the first of more.

    Example:
        >>> point = random_labelled_points(1, seed=0, dimensions=4, classes=2)[0]
        >>> [round(x, 2) for x in point.x], point.label
        ([0.69, 0.52, -0.16, -0.48], 0)
    """
    random = Random(seed)
    found = []
    for _ in range(n):
        x = [2 * random.random() - 1 for _ in range(dimensions)]
        found.append(LabelledPoint(x, x.index(max(x[:classes]))))
    return found
