"""Pictures: boxes and arrows from left to right, and bars in groups.

Graphs, schedules and learned machines are boxes and arrows: igraph finds the places (Sugiyama's layers), Matplotlib
draws; both come as wheels with the extra `plot`. Bars are SVG, for which no library is needed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from edbatch.base.files import checked_path, write_atomically
from edbatch.base.later import Later
from edbatch.errors import EdBatchError

figures = Later("matplotlib.figure")
patches = Later("matplotlib.patches")
paths = Later("matplotlib.path")
colormaps = Later("matplotlib")
igraph = Later("igraph")

FORMATS = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # what keeps a file the same every time
CHARACTER, LINE = 0.08, 0.16  # inches of a text of nine points
MARGIN, BETWEEN_LAYERS, BETWEEN_BOXES = 0.12, 0.55, 0.12  # inches
TURN = 0.4  # inches that an arrow takes to turn
SAID = (0.65**3, 3 * 0.35 * 0.65**2, 3 * 0.35**2 * 0.65, 0.35**3)  # of a curve's corners: its text is where none meet
MOST_INCHES = 300.0  # of a side: what Matplotlib draws without running out of dots
COLOURS = ("#d1495b", "#edae49", "#4aa3df", "#1f4e79", "#7b5ea7", "#2a9d8f")
BAR, BETWEEN, HEIGHT, LEFT, TOP = 34, 26, 190, 24, 84  # pixels; BETWEEN groups of bars

Point = tuple[float, float]


def format_of(path: str | os.PathLike[str]) -> str:
    """What a picture's name ends with, PNG where it says nothing; an EdBatchError if it is none of `FORMATS`."""
    ending = checked_path(path).suffix.removeprefix(".").lower() or "png"
    if ending not in FORMATS:
        raise EdBatchError(f"{path}: expected a name that ends with .{', .'.join(FORMATS)}")
    return ending


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure of Matplotlib as its file's name ends, in one step; the same figure is the same file."""
    form, drawn = format_of(path), io.BytesIO()
    figure.savefig(drawn, format=form, metadata=FORMATS[form])
    write_atomically(path, drawn.getvalue())


def missing(path: str | os.PathLike[str], error: ImportError) -> EdBatchError:
    """What is said where a library that draws is not installed."""
    name = "Matplotlib" if (error.name or "").startswith("matplotlib") else error.name
    return EdBatchError(f"{path}: {name} is not installed; expected pip install 'edbatch[plot]'")


class Box(NamedTuple):
    """A box of a diagram; `colour` is the number of one, of twenty that come again; None: white."""

    text: str
    colour: int | None = None


class Arrow(NamedTuple):
    """An arrow between two boxes, by their numbers, with a text beside it."""

    tail: int
    head: int
    text: str = ""


@dataclass
class Diagram:
    """Boxes, and arrows from left to right as far as they form no circle; a title above, a legend below."""

    title: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Draw it: PNG, SVG or PDF, as the name ends.

        Raises:
            EdBatchError: a library is not installed, the picture is too large, or the file cannot be written.
        """
        try:
            write_figure(_Drawing(self, str(path)).figure, path)
        except ImportError as error:
            raise missing(path, error) from None


class _Drawing:
    """A diagram in inches, on a figure."""

    def __init__(self, diagram: Diagram, name: str) -> None:
        self._sizes = [_size(box.text) for box in diagram.boxes]
        self._places, bends = self._placed(diagram)
        heading, legend = diagram.title.splitlines(), "\n".join(diagram.legend)
        most = max((len(line) for line in (*heading, *diagram.legend)), default=0)
        foot = LINE * (1 + len(diagram.legend))
        x_of, y_of = zip(*self._places, *(at for points in bends for at in points), (0.0, 0.0), strict=True)
        half, tall = (max((size[axis] for size in self._sizes), default=0) / 2 + MARGIN for axis in (0, 1))
        left, low = min(x_of) - half, min(y_of) - tall - foot
        right = max(max(x_of) + half, left + 2 * MARGIN + most * CHARACTER)
        high = max(y_of) + tall + LINE * (2 + len(heading))
        if max(right - left, high - low) > MOST_INCHES:
            raise EdBatchError(f"{name}: {len(diagram.boxes):,} boxes take more room than a picture has")
        self.figure = figures.Figure(figsize=(right - left, high - low))
        self._axes: Any = self.figure.add_axes((0, 0, 1, 1), xlim=(left, right), ylim=(low, high))
        self._axes.set_axis_off()
        self._text(left + MARGIN, high - MARGIN, diagram.title, weight="bold", ha="left", va="top")
        self._text(left + MARGIN, low + foot, legend, ha="left", va="top")
        for arrow, points in zip(diagram.arrows, bends, strict=True):
            self._arrow(arrow, points)
        for box, at, size in zip(diagram.boxes, self._places, self._sizes, strict=True):
            self._box(box, at, size)

    def _placed(self, diagram: Diagram) -> tuple[list[Point], list[list[Point]]]:
        """Per box its middle, per arrow the points between its ends, in inches."""
        boxes, bends = _laid_out(len(diagram.boxes), [(arrow.tail, arrow.head) for arrow in diagram.arrows])
        row = max((height for _, height in self._sizes), default=0) + BETWEEN_BOXES
        widths = [0.0] * (1 + max((layer for _, layer in boxes), default=0))
        for (_, layer), (width, _) in zip(boxes, self._sizes, strict=True):
            widths[layer] = max(widths[layer], width)
        texts = max((len(arrow.text) for arrow in diagram.arrows), default=0) * CHARACTER
        middles = [widths[0] / 2]
        for before, after in pairwise(widths):
            middles.append(middles[-1] + (before + after) / 2 + BETWEEN_LAYERS + texts)

        def inches(points: Iterable[tuple[float, int]]) -> list[Point]:
            return [(middles[layer], -across * row) for across, layer in points]

        return inches(boxes), [inches(points) for points in bends]

    def _box(self, box: Box, at: Point, size: Point) -> None:
        (x, y), (width, height) = at, size
        style = patches.BoxStyle("round", pad=0, rounding_size=0.06)
        strong = (1, 1, 1) if box.colour is None else colormaps.colormaps["tab20"](box.colour % 20)[:3]
        frame = {"facecolor": [0.45 * part + 0.55 for part in strong], "edgecolor": "#333333", "linewidth": 0.7}
        corner = x - width / 2, y - height / 2
        self._axes.add_patch(patches.FancyBboxPatch(corner, width, height, boxstyle=style, **frame, zorder=2))
        self._text(x, y, box.text, ha="center", va="center")

    def _arrow(self, arrow: Arrow, bends: list[Point]) -> None:
        """A smooth line from the right of a box to the left of another, over the box to itself, or, of what leads back,
        from the left of a box to the right of another, below what leads forward between the two."""
        (x, y), (to_x, to_y) = self._places[arrow.tail], self._places[arrow.head]
        (width, height), (to_width, to_height) = self._sizes[arrow.tail], self._sizes[arrow.head]
        ahead, below = (-1, 0.25) if x > to_x else (1, 0.0)
        start = x + ahead * width / 2, y - below * height
        points = [start, *bends, (to_x - ahead * to_width / 2, to_y - below * to_height)]
        corners = [start]
        for before, after in pairwise(points):
            pull = ahead * min(max(abs(after[0] - before[0]) / 2, TURN / 2), 2 * TURN)
            corners += [(before[0] + pull, before[1]), (after[0] - pull, after[1]), after]
        said_x, said_y = (sum(part * at[axis] for part, at in zip(SAID, corners, strict=False)) for axis in (0, 1))
        if arrow.tail == arrow.head:
            top, side, said_x, said_y = y + height / 2, width / 4, x, y + height / 2 + 1.5 * LINE
            corners = [(x - side, top), (x - side, top + 2 * LINE), (x + side, top + 2 * LINE), (x + side, top)]
        shape = paths.Path(corners, [paths.Path.MOVETO] + [paths.Path.CURVE4] * (len(corners) - 1))
        look = {"arrowstyle": "-|>,head_width=2.2,head_length=4", "linewidth": 0.8, "color": "#777777", "zorder": 1}
        self._axes.add_patch(patches.FancyArrowPatch(path=shape, shrinkA=0, shrinkB=0, fill=False, **look))
        self._text(said_x, said_y, arrow.text, 7, ha="center", va="top" if below else "bottom", color="#444444")

    def _text(self, x: float, y: float, text: str, fontsize: int = 9, **look: Any) -> None:
        self._axes.text(x, y, text, fontsize=fontsize, family="monospace", parse_math=False, zorder=3, **look)


def _laid_out(n: int, ends: list[tuple[int, int]]) -> tuple[list[tuple[float, int]], list[list[tuple[float, int]]]]:
    """Per box, and per bend of each arrow, its place across the layers and its layer.

    What hangs together is laid out by itself: of several such parts igraph mixes up the bends.
    """
    boxes, bends = [(0.0, 0)] * n, [list[tuple[float, int]]() for _ in ends]
    begin = 0.0
    for members in igraph.Graph(n=n, edges=ends, directed=True).connected_components(mode="weak"):
        place = {box: at for at, box in enumerate(members)}
        inside = [number for number, (tail, _) in enumerate(ends) if tail in place]
        edges = [(place[ends[number][0]], place[ends[number][1]]) for number in inside]
        found = igraph.Graph(n=len(members), edges=edges, directed=True).layout_sugiyama()
        points = _apart([*found.coords, *(at for bend in found.edge_routing for at in bend)])
        shift = begin - min(across for across, _ in points)
        moved = iter([(across + shift, layer) for across, layer in points])
        for box in members:
            boxes[box] = next(moved)
        for number, bend in zip(inside, found.edge_routing, strict=True):
            bends[number] = [next(moved) for _ in bend]
        begin = max(across for across, _ in points) + shift + 1
    return boxes, bends


def _apart(points: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
    """The same points with at least 1 between those of one layer, which igraph does not promise."""
    found, last = [(0.0, 0)] * len(points), dict[int, float]()
    for at, (across, layer) in sorted(enumerate(points), key=lambda point: (point[1][0], point[0])):
        last[round(layer)] = max(across, last.get(round(layer), -float("inf")) + 1)
        found[at] = last[round(layer)], round(layer)
    return found


def _size(text: str) -> Point:
    lines = text.splitlines()
    return CHARACTER * max(map(len, lines)) + MARGIN, LINE * len(lines) + MARGIN


def bars(title: str, panels: Mapping[str, Mapping[str, Sequence[float]]], sides: Sequence[str]) -> str:
    """Bars in groups as SVG, with a line across at 1.

    Args:
        panels: by their titles, each to a scale of its own: by the name of a group a value for each side.
        sides: their names; each has a colour.

    Example:
        >>> bars("Batches", {"over the bound": {"trees": [1.9, 1.0]}}, ["depth", "learned"]).startswith("<svg")
        True
    """
    parts, x, floor = [_svg_text(LEFT, 22, title, size=16)], 0.0, TOP + HEIGHT
    for at, side in enumerate(sides):
        parts.append(f'<rect x="{LEFT + 130 * at}" y="40" width="14" height="14" fill="{COLOURS[at]}"/>')
        parts.append(_svg_text(LEFT + 130 * at + 20, 52, side))
    for name, groups in panels.items():
        parts.append(_svg_text(x + LEFT, TOP, name, weight="bold"))
        scale = (HEIGHT - 30) / max(1.0, *(value for values in groups.values() for value in values))
        begin = x = x + LEFT
        for group, values in groups.items():
            parts.append(_svg_text(x + BAR * len(values) / 2, floor + 20, group, "middle"))
            for colour, value in zip(COLOURS, values, strict=False):
                top = floor - scale * value
                box = f'x="{x + 1:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{scale * value:.1f}"'
                parts.append(f'<rect {box} fill="{colour}"/>')
                said = f"{value:.2f}" if value < 10 else f"{value:.0f}"
                parts.append(_svg_text(x + BAR / 2, top - 4, said, "middle"))
                x += BAR
            x += BETWEEN
        for y, how in ((floor, ""), (floor - scale, ' stroke-dasharray="4 3"')):
            ends = f'x1="{begin:.1f}" x2="{x - BETWEEN:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
            parts.append(f'<line {ends} stroke="#444444"{how}/>')
    width, height = round(max(x + LEFT, LEFT + 130 * len(sides), LEFT + 9 * len(title))), floor + 50
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>\n"])


def _svg_text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", size: int = 12) -> str:
    how = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {how}>{escape(text)}</text>'
