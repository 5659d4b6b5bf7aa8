"""Boxes and arrows from left to right, as a picture: what graphs, schedules and learned machines look like.

igraph finds the places (Sugiyama's layers), Matplotlib draws; both come as wheels with the extra `plot`, so that nobody
needs Graphviz.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from edbatch.base.later import Later
from edbatch.base.picture import missing, write_figure
from edbatch.errors import EdBatchError

figures = Later("matplotlib.figure")
patches = Later("matplotlib.patches")
paths = Later("matplotlib.path")
colormaps = Later("matplotlib")
igraph = Later("igraph")

CHARACTER, LINE = 0.078, 0.16  # inches of a text of nine points
MARGIN, BETWEEN_LAYERS, BETWEEN_BOXES = 0.12, 0.55, 0.12  # inches
TURN = 0.4  # inches that an arrow takes to turn
CLOSER = 1.8  # times; then an arrow that passes by a box still does not touch it
SAID = 0.35  # of the way, where an arrow's text is: in the middle arrows meet that cross
MOST_INCHES = 300.0  # of a side: what Matplotlib draws without running out of dots
WHITE = "#ffffff"


Point = tuple[float, float]


class Box(NamedTuple):
    """A box of a diagram.

    Attributes:
        text: of one line or several.
        colour: number of a colour, which come again after twenty; None: white.
        bold: whether its frame is.
    """

    text: str
    colour: int | None = None
    bold: bool = False


class Arrow(NamedTuple):
    """An arrow between two boxes, by their numbers.

    Attributes:
        text: beside it.
        width: of the line, in points.
    """

    tail: int
    head: int
    text: str = ""
    width: float = 0.8


@dataclass
class Diagram:
    """What is drawn.

    Args:
        title: over it; may have several lines.
        boxes, arrows: of it; arrows lead from left to right as far as they form no circle.
        legend: under it, a line each.
    """

    title: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Draw it.

        Args:
            path: of the picture, which is replaced in one step: PNG, SVG or PDF, as the name ends.

        Raises:
            EdBatchError: Matplotlib or igraph is not installed, the name ends otherwise, it would be larger than
                Matplotlib draws, or the file cannot be written.
        """
        try:
            figure = _Drawing(self, str(path)).figure
        except ImportError as error:
            raise missing(path, error) from None
        write_figure(figure, path)


class _Drawing:
    """A diagram in inches, on a figure."""

    def __init__(self, diagram: Diagram, name: str) -> None:
        self._diagram = diagram
        self._sizes = [_size(box.text) for box in diagram.boxes]
        self._places, self._bends = self._placed()
        head = LINE * (2 + len(diagram.title.splitlines()))
        foot = LINE * (1 + len(diagram.legend))
        most = max((len(line) for line in (*diagram.title.splitlines(), *diagram.legend)), default=0)
        x_of, y_of = zip(*self._places, *(at for bends in self._bends for at in bends), (0.0, 0.0), strict=True)
        half = max((size[0] for size in self._sizes), default=0) / 2 + MARGIN
        tall = max((size[1] for size in self._sizes), default=0) / 2 + MARGIN
        left, right = min(x_of) - half, max(max(x_of) + half, min(x_of) - half + 2 * MARGIN + most * CHARACTER)
        low, high = min(y_of) - tall - foot, max(y_of) + tall + head
        width, height = right - left, high - low
        if max(width, height) > MOST_INCHES:
            raise EdBatchError(f"{name}: {len(diagram.boxes):,} boxes take more room than a picture has")
        self.figure = figures.Figure(figsize=(width, height))
        self._axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(left, right), ylim=(low, high))
        self._axes.set_axis_off()
        self._text(left + MARGIN, high - MARGIN, diagram.title, weight="bold", ha="left", va="top")
        self._text(left + MARGIN, low + foot, "\n".join(diagram.legend), ha="left", va="top")
        for arrow, bends in zip(diagram.arrows, self._bends, strict=True):
            self._arrow(arrow, bends)
        for box, at, size in zip(diagram.boxes, self._places, self._sizes, strict=True):
            self._box(box, at, size)

    def _placed(self) -> tuple[list[Point], list[list[Point]]]:
        """Per box its middle, per arrow the points between its ends, in inches."""
        diagram = self._diagram
        boxes, bends = _laid_out(len(diagram.boxes), [(arrow.tail, arrow.head) for arrow in diagram.arrows])
        layers = [round(layer) for _, layer in boxes]
        row = max((height for _, height in self._sizes), default=0) + BETWEEN_BOXES
        row /= _spread(boxes, [at for points in bends for at in points])
        widths = [0.0] * (max(layers, default=0) + 1)
        for layer, (width, _) in zip(layers, self._sizes, strict=True):
            widths[layer] = max(widths[layer], width)
        middles = [widths[0] / 2]
        texts = max((len(arrow.text) for arrow in diagram.arrows), default=0) * CHARACTER
        for before, after in pairwise(widths):
            middles.append(middles[-1] + (before + after) / 2 + BETWEEN_LAYERS + texts)

        def place(at: Sequence[float]) -> Point:
            return middles[round(at[1])], -at[0] * row

        return list(map(place, boxes)), [list(map(place, points)) for points in bends]

    def _box(self, box: Box, at: Point, size: Point) -> None:
        (x, y), (width, height) = at, size
        colour = WHITE if box.colour is None else colormaps.colormaps["tab20"](box.colour % 20, alpha=0.45)
        corner = x - width / 2, y - height / 2
        style = patches.BoxStyle("round", pad=0, rounding_size=0.06)
        for face in dict.fromkeys((WHITE, colour)):  # arrows do not shine through
            frame = {"facecolor": face, "edgecolor": "#333333", "linewidth": 2.0 if box.bold else 0.7}
            self._axes.add_patch(patches.FancyBboxPatch(corner, width, height, boxstyle=style, **frame, zorder=2))
        self._text(x, y, box.text, ha="center", va="center")

    def _arrow(self, arrow: Arrow, bends: list[Point]) -> None:
        """A smooth line from the right of a box to the left of another, over the box to itself, or, of what leads back,
        from the left of a box to the right of another, below what leads forward between the two."""
        (x, y), (to_x, to_y) = self._places[arrow.tail], self._places[arrow.head]
        (width, height), (to_width, to_height) = self._sizes[arrow.tail], self._sizes[arrow.head]
        ahead, below = (-1, 0.25) if x > to_x else (1, 0.0)
        points = [
            (x + ahead * width / 2, y - below * height),
            *bends,
            (to_x - ahead * to_width / 2, to_y - below * to_height),
        ]
        corners = [points[0]]
        if arrow.tail == arrow.head:
            top, side = y + height / 2, width / 4
            corners = [(x - side, top), (x - side, top + 2 * LINE), (x + side, top + 2 * LINE), (x + side, top)]
            points = []
        for before, after in pairwise(points):
            pull = ahead * min(max(abs(after[0] - before[0]) / 2, TURN / 2), 2 * TURN)
            corners += [(before[0] + pull, before[1]), (after[0] - pull, after[1]), after]
        codes = [paths.Path.MOVETO] + [paths.Path.CURVE4] * (len(corners) - 1)
        look = {"arrowstyle": "-|>,head_width=2.2,head_length=4", "linewidth": arrow.width, "color": "#777777"}
        shape = paths.Path(corners, codes)
        self._axes.add_patch(patches.FancyArrowPatch(path=shape, shrinkA=0, shrinkB=0, fill=False, **look, zorder=1))
        if arrow.text:
            first = 3 * ((len(corners) - 1) // 3 // 2)
            at = _on_curve(corners[first : first + 4], 0.5 if arrow.tail == arrow.head else SAID)
            self._text(*at, arrow.text, ha="center", va="top" if below else "bottom", color="#444444", fontsize=7)

    def _text(self, x: float, y: float, text: str, fontsize: int = 9, **look: Any) -> None:
        self._axes.text(x, y, text, fontsize=fontsize, family="monospace", parse_math=False, zorder=3, **look)


def _laid_out(n: int, ends: list[tuple[int, int]]) -> tuple[list[list[float]], list[list[list[float]]]]:
    """Per box, and per bend of each arrow, its place across the layers and its layer.

    What hangs together is laid out by itself: of several such parts igraph mixes up the bends.
    """
    boxes, bends = [[0.0, 0.0] for _ in range(n)], [list[list[float]]() for _ in ends]
    parts = igraph.Graph(n=n, edges=ends, directed=True).connected_components(mode="weak")
    arrows: list[list[int]] = [[] for _ in parts]
    for number, (tail, _) in enumerate(ends):
        arrows[parts.membership[tail]].append(number)
    begin = 0.0
    for members, inside in zip(parts, arrows, strict=True):
        place = {box: at for at, box in enumerate(members)}
        edges = [(place[ends[number][0]], place[ends[number][1]]) for number in inside]
        found = igraph.Graph(n=len(members), edges=edges, directed=True).layout_sugiyama()
        across = [x for x, _ in found.coords] + [x for points in found.edge_routing for x, _ in points]
        shift = begin - min(across)
        for box, (x, layer) in zip(members, found.coords, strict=True):
            boxes[box] = [x + shift, layer]
        for number, points in zip(inside, found.edge_routing, strict=True):
            bends[number] = [[x + shift, layer] for x, layer in points]
        begin = max(across) + shift + 1
    return boxes, bends


def _on_curve(corners: Sequence[Point], part: float) -> Point:
    """The point of a cubic curve after such a part of it."""
    weights = (1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3
    x, y = (sum(weight * at for weight, at in zip(weights, along, strict=True)) for along in zip(*corners, strict=True))
    return x, y


def _size(text: str) -> Point:
    """Inches of a box around a text."""
    lines = text.splitlines() or [""]
    return CHARACTER * max(map(len, lines)) + MARGIN, LINE * len(lines) + MARGIN


def _spread(boxes: list[list[float]], bends: list[list[float]]) -> float:
    """Have at least 1 between what lies in one layer, which igraph does not promise.

    Returns:
        What lies between boxes, at most `CLOSER`: where only arrows pass between them, there is room.
    """
    beside = sorted([*((at[1], at[0], 0, at) for at in boxes), *((at[1], at[0], 1, at) for at in bends)])
    for (layer, _, _, before), (other, _, _, at) in pairwise(beside):
        if layer == other:
            at[0] = max(at[0], before[0] + 1)
    lie = sorted((layer, x) for x, layer in boxes)
    return min(CLOSER, *(x - before for (layer, before), (other, x) in pairwise(lie) if layer == other), CLOSER)
