"""Bars in groups, as SVG: a picture for which no library is needed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

COLOURS = ("#d1495b", "#edae49", "#4aa3df", "#1f4e79", "#7b5ea7", "#2a9d8f")
BAR, BETWEEN, HEIGHT, LEFT, TOP = 34, 26, 190, 24, 84  # pixels; BETWEEN groups


class Panel(NamedTuple):
    """Bars that are drawn to one scale.

    Attributes:
        title: what their values are.
        groups: by name, a value for each side.
        sides: the names of the sides, of which each has a colour.
        line: a value at which a line is drawn across; None: at none.
    """

    title: str
    groups: dict[str, list[float]]
    sides: Sequence[str]
    line: float | None = None

    @property
    def width(self) -> int:
        """In pixels."""
        return sum(BAR * len(values) + BETWEEN for values in self.groups.values()) + LEFT


def drawn(title: str, panels: Sequence[Panel]) -> str:
    """A picture of panels side by side, with one legend for all.

    Args:
        title: over it.
        panels: at least one; sides of one name have one colour.

    Example:
        >>> drawn("Batches", [Panel("over the bound", {"trees": [1.9, 1.0]}, ["depth", "learned"])]).startswith("<svg")
        True
    """
    sides = list(dict.fromkeys(side for panel in panels for side in panel.sides))
    colours = {side: COLOURS[at % len(COLOURS)] for at, side in enumerate(sides)}
    legend = [_legend(colours[side], side, LEFT + 130 * at) for at, side in enumerate(sides)]
    parts, x = [], 0
    for panel in panels:
        parts += _panel(panel, colours, x)
        x += panel.width + LEFT
    width, height = max(x, LEFT + 130 * len(sides), LEFT + 9 * len(title)), TOP + HEIGHT + 50
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    back = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, back, _text(LEFT, 22, title, size=16), *legend, *parts, "</svg>\n"])


def _panel(panel: Panel, colours: dict[str, str], x: float) -> list[str]:
    most = max([value for values in panel.groups.values() for value in values] + [panel.line or 0.0])
    floor, scale = TOP + HEIGHT, (HEIGHT - 30) / most
    found, at = [_text(x + LEFT, TOP, panel.title, weight="bold")], x + LEFT
    for name, values in panel.groups.items():
        for side, value in zip(panel.sides, values, strict=True):
            tall = scale * value
            box = f'x="{at + 1:.1f}" y="{floor - tall:.1f}" width="{BAR - 2}" height="{tall:.1f}"'
            found.append(f'<rect {box} fill="{colours[side]}"/>')
            found.append(
                _text(at + BAR / 2, floor - tall - 4, f"{value:.2f}" if value < 10 else f"{value:.0f}", "middle")
            )
            at += BAR
        found.append(_text(at - BAR * len(values) / 2, floor + 20, name, "middle"))
        at += BETWEEN
    found.append(_line(x + LEFT, at - BETWEEN, floor, "#444444"))
    if panel.line is not None:
        found.append(_line(x + LEFT, at - BETWEEN, floor - scale * panel.line, "#444444", ' stroke-dasharray="4 3"'))
    return found


def _legend(colour: str, side: str, x: float) -> str:
    return f'<rect x="{x}" y="40" width="14" height="14" fill="{colour}"/>' + _text(x + 20, 52, side)


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", size: int = 12) -> str:
    how = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {how}>{escape(text)}</text>'


def _line(x: float, to: float, y: float, colour: str, how: str = "") -> str:
    return f'<line x1="{x:.1f}" x2="{to:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"{how}/>'
