"""Pictures: boxes and arrows from left to right.

igraph finds the places of boxes (Sugiyama's layers), Matplotlib draws; both come as wheels with the extra `plot`.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edbatch.base.files import checked_path, write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError

matplotlib = LazyModule("matplotlib")
patches = LazyModule("matplotlib.patches")
figures = LazyModule("matplotlib.figure")
igraph = LazyModule("igraph")

FORMATS = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # what keeps a file the same every time
CHARACTER, LINE = 0.08, 0.16  # inches of a text of nine points
MARGIN, BETWEEN_LAYERS, BETWEEN_BOXES = 0.12, 0.55, 0.12  # inches
MOST_INCHES = 300.0  # of a side: what Matplotlib draws without running out of dots
ARROW = {
    "arrowstyle": "-|>,head_width=2.2,head_length=4", "shrinkA": 0, "shrinkB": 0, "linewidth": 0.8, "color": "#777777",
    "clip_on": False, "zorder": 1,
}  # fmt: skip
BEND, LOOP = 0.15, 1.5  # of arrows that do not lead to the next layer, and of those to their own box

Point = tuple[float, float]


def format_of(path: str | os.PathLike[str]) -> str:
    """What a picture's name ends with, PNG where it says nothing; an EdBatchError if it is none of `FORMATS`."""
    ending = checked_path(path).suffix.removeprefix(".").lower() or "png"
    if ending not in FORMATS:
        raise EdBatchError(f"{path}: expected a name that ends with .{', .'.join(FORMATS)}")
    return ending


def write_figure(figure: Any, path: str | os.PathLike[str], **how: Any) -> None:
    """Write a figure of Matplotlib as its file's name ends, in one step; the same figure is the same file."""
    form, drawn = format_of(path), io.BytesIO()
    figure.savefig(drawn, format=form, metadata=FORMATS[form], **how)
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
            write_figure(self._drawn(str(path)), path, bbox_inches="tight", pad_inches=MARGIN)
        except ImportError as error:
            raise missing(path, error) from None

    def _drawn(self, name: str) -> Any:
        """A figure whose units are inches, and on which all may lie anywhere: what there is, is written."""
        places, sizes = self._placed(), [_size(box.text) for box in self.boxes]
        low = min([0.0, *(y - height for (_, y), (_, height) in zip(places, sizes, strict=True))])
        if max([-low, *(x for x, _ in places)]) > MOST_INCHES:
            raise EdBatchError(f"{name}: {len(self.boxes):,} boxes do not fit into one picture")
        figure = figures.Figure(figsize=(1, 1))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        high = max((height for _, height in sizes), default=0.0) + LINE
        _text(axes, (0, high), self.title, weight="bold", ha="left", va="bottom")
        _text(axes, (0, low - LINE), "\n".join(self.legend), ha="left", va="top")
        for arrow in self.arrows:
            _draw_arrow(axes, arrow, places, sizes)
        for box, place, size in zip(self.boxes, places, sizes, strict=True):
            _draw_box(axes, box, place, size)
        return figure

    def _placed(self) -> list[Point]:
        """The middle of each box."""
        sizes = [_size(box.text) for box in self.boxes]
        row = max((height for _, height in sizes), default=0) + BETWEEN_BOXES
        texts = max((len(arrow.text) for arrow in self.arrows), default=0) * CHARACTER
        found, left = [(0.0, 0.0)] * len(self.boxes), 0.0
        for layer in _layers(len(self.boxes), [(arrow.tail, arrow.head) for arrow in self.arrows]):
            width = max(sizes[box][0] for box in layer)
            for box, across in layer.items():
                found[box] = left + width / 2, -across * row
            left += width + BETWEEN_LAYERS + texts
        return found


def _layers(n: int, ends: list[tuple[int, int]]) -> list[dict[int, float]]:
    """The boxes of each layer, with their places across it, which are at least 1 apart.

    What hangs together is laid out by itself: igraph 1.0 reads beyond its arrays where there are several such parts.
    """
    layers: list[dict[int, float]] = []
    graph = igraph.Graph(n=n, edges=ends, directed=True)
    begin = 0.0
    for members in graph.connected_components(mode="weak"):
        places = graph.subgraph(members).layout_sugiyama().coords
        for (across, layer), box in sorted(zip(places, members, strict=True)):
            layers += [{} for _ in range(1 + round(layer) - len(layers))]
            last = max(layers[round(layer)].values(), default=-1.0)
            layers[round(layer)][box] = max(begin + across, last + 1)  # igraph may give two boxes one place
        begin = 1 + max(max(layer.values()) for layer in layers)
    return layers


def _size(text: str) -> Point:
    lines = text.splitlines()
    return CHARACTER * max(map(len, lines)) + MARGIN, LINE * len(lines) + MARGIN


def _text(axes: Any, place: Point, text: str, fontsize: int = 9, **look: Any) -> None:
    axes.text(*place, text, fontsize=fontsize, family="monospace", parse_math=False, zorder=3, **look)


def _draw_box(axes: Any, box: Box, place: Point, size: Point) -> None:
    strong = (1, 1, 1) if box.colour is None else matplotlib.colormaps["tab20"](box.colour % 20)[:3]
    frame = {"facecolor": [0.45 * part + 0.55 for part in strong], "edgecolor": "#333333", "linewidth": 0.7}
    corner = place[0] - size[0] / 2, place[1] - size[1] / 2
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(patches.FancyBboxPatch(corner, *size, boxstyle=style, clip_on=False, zorder=2, **frame))
    _text(axes, place, box.text, ha="center", va="center")


def _draw_arrow(axes: Any, arrow: Arrow, places: list[Point], sizes: list[Point]) -> None:
    """From the right of a box to the left of another; of what leads back, from left to right, below; or over a box."""
    (x, y), (to_x, to_y) = places[arrow.tail], places[arrow.head]
    (width, height), (to_width, _) = sizes[arrow.tail], sizes[arrow.head]
    if arrow.tail == arrow.head:
        start, end, bend = (x - width / 4, y + height / 2), (x + width / 4, y + height / 2), LOOP
    else:
        ahead = 1 if to_x > x else -1
        start, end = (x + ahead * width / 2, y), (to_x - ahead * to_width / 2, to_y)
        bend = BEND if ahead < 0 or any(x < between < to_x for between, _ in places) else 0.0
    style = f"arc3,rad={-bend}"
    axes.add_patch(patches.FancyArrowPatch(start, end, connectionstyle=style, **ARROW))
    across, up = end[0] - start[0], end[1] - start[1]
    middle = (start[0] + end[0] - bend * up) / 2, (start[1] + end[1] + bend * across) / 2
    _text(axes, middle, arrow.text, 7, ha="center", va="top" if across < 0 else "bottom", color="#444444")
