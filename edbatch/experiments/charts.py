"""Charts of rows, drawn by Matplotlib; the papers' own numbers are drawn beside, dashed or hatched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edbatch.base.later import Later

ticks = Later("matplotlib.ticker")

Rows = Sequence[dict[str, Any]]
THEIRS = " (theirs)"  # what the name of a side of the paper's ends with
COLOURS = (
    "#1f4e79", "#d1495b", "#2a9d8f", "#edae49", "#7b5ea7", "#8d6b4f", "#4aa3df", "#c97b9d", "#5b8c3a", "#666666",
    "#b8b04a", "#222222",
)  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """Panels.

    Attributes:
        x, y: columns.
        panel: the column whose values have a panel each; "": one panel.
        side: the column whose values have a line, or a bar, each.
        title: of the values, with their unit.
        log: whether they are drawn by their logarithm.
        wide: whether its panels are as wide as the picture.
        of: which rows are drawn, and what is made of them.
    """

    x: str
    y: str
    panel: str = ""
    side: str = "side"
    title: str = ""
    log: bool = False
    wide: bool = False
    of: Callable[[Rows], Rows] = list

    def panels(self, rows: Rows) -> dict[str, Rows]:
        """Rows by panel; those without the value are not drawn."""
        found: dict[str, Any] = {}
        for row in self.of([row for row in rows if row.get(self.y) is not None and row.get(self.x) is not None]):
            found.setdefault(str(row.get(self.panel, "")), []).append(row)
        return found

    def sides(self, rows: Rows) -> list[str]:
        """In the order in which they come."""
        return list(dict.fromkeys(str(row[self.side]) for row in rows))

    def draw(self, axes: Any, rows: Rows, colours: dict[str, str]) -> None:
        """Draw one panel.

        Args:
            axes: of Matplotlib.
            rows: of the panel.
            colours: by side.
        """
        raise NotImplementedError

    def describe(self, axes: Any) -> None:
        """Titles of the axes, and their scales."""
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.title or self.y)
        if self.log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(ticks.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axes.yaxis.set_minor_formatter(ticks.NullFormatter())
        axes.grid(visible=True, axis="y", linewidth=0.4, alpha=0.6)
        axes.spines[["top", "right"]].set_visible(False)


class Lines(Chart):
    """A line for each side over numbers, which are drawn by their logarithm."""

    def draw(self, axes: Any, rows: Rows, colours: dict[str, str]) -> None:
        """See `Chart.draw`."""
        self.describe(axes)
        for side in self.sides(rows):
            points = sorted((row[self.x], row[self.y]) for row in rows if str(row[self.side]) == side)
            style = "--" if side.endswith(THEIRS) else "-"
            axes.plot(*zip(*points, strict=True), style, marker="o", ms=3, lw=1.4, color=colours[side], label=side)
        at = sorted({row[self.x] for row in rows})
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [f"{x:,}" for x in at])
        axes.minorticks_off()


class Bars(Chart):
    """A group of bars for each value of x, a bar for each side."""

    def draw(self, axes: Any, rows: Rows, colours: dict[str, str]) -> None:
        """See `Chart.draw`."""
        self.describe(axes)
        sides, places = self.sides(rows), list(dict.fromkeys(str(row[self.x]) for row in rows))
        width = 0.8 / len(sides)
        for number, side in enumerate(sides):
            of = [row for row in rows if str(row[self.side]) == side]
            at = [places.index(str(row[self.x])) + (number - (len(sides) - 1) / 2) * width for row in of]
            hatch = "///" if side.endswith(THEIRS) else None
            heights = [row[self.y] for row in of]
            bars = axes.bar(at, heights, width, color=colours[side], label=side, hatch=hatch, edgecolor="white")
            axes.bar_label(bars, ["" if height else "0" for height in heights], fontsize=7, color=colours[side])
        if not all(place.isdigit() for place in places):  # names say what they are
            axes.set_xlabel("")
        _name(axes, places, self.wide)


class Stack(Chart):
    """A bar for each value of x, whose parts are the sides."""

    def draw(self, axes: Any, rows: Rows, colours: dict[str, str]) -> None:
        """See `Chart.draw`."""
        self.describe(axes)
        places = list(dict.fromkeys(str(row[self.x]) for row in rows))
        below = dict.fromkeys(places, 0.0)
        for side in self.sides(rows):
            of = {str(row[self.x]): row[self.y] for row in rows if str(row[self.side]) == side}
            heights = [of.get(place, 0.0) for place in places]
            axes.bar(range(len(places)), heights, 0.7, list(below.values()), color=colours[side], label=side)
            below = {place: below[place] + height for place, height in zip(places, heights, strict=True)}
        if not all(place.isdigit() for place in places):  # names say what they are
            axes.set_xlabel("")
        _name(axes, places, self.wide)


class Grid(Chart):
    """Numbers in a grid, x by `side`, coloured by their logarithm."""

    def draw(self, axes: Any, rows: Rows, colours: dict[str, str]) -> None:
        """See `Chart.draw`."""
        columns, lines = (sorted({row[name] for row in rows}) for name in (self.x, self.side))
        found = {(row[self.side], row[self.x]): row[self.y] for row in rows}
        values = [[found.get((line, column), float("nan")) for column in columns] for line in lines]
        axes.imshow(
            [[_magnitude(value) for value in line] for line in values], cmap="Blues", vmin=-1, vmax=4.5, origin="lower"
        )
        for at, line in enumerate(values):
            for column, value in enumerate(line):
                dark = _magnitude(value) > 2
                text = "" if value != value else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
                axes.text(column, at, text, ha="center", va="center", color="white" if dark else "black", fontsize=9)
        axes.set_xticks(range(len(columns)), [f"{value:,}" for value in columns])
        axes.set_yticks(range(len(lines)), [f"{value:,}" for value in lines])
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.side)


def _magnitude(value: float) -> float:
    """Its decimal logarithm, of what can have one."""
    return math.log10(value) if value > 0 else float("nan")


def _name(axes: Any, places: Sequence[str], wide: bool) -> None:
    long = sum(map(len, places)) > (150 if wide else 40)
    axes.set_xticks(range(len(places)), places, rotation=30 if long else 0, ha="right" if long else "center")
