"""The picture of an experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from edbatch.base.drawing import format_of, missing, write_figure
from edbatch.base.later import Later
from edbatch.experiments.charts import COLOURS, THEIRS, Rows
from edbatch.experiments.experiment import Experiment

figures = Later("matplotlib.figure")

ACROSS = 3  # panels
SIZE = (4.4, 3.1)  # of one, in inches


def check_drawing(path: str | os.PathLike[str]) -> None:
    """Raise before anything is measured where a picture could not be drawn.

    Raises:
        EdBatchError: Matplotlib is not installed, or the name ends otherwise than a picture's.
    """
    format_of(path)
    try:
        _ = figures.Figure
    except ImportError as error:
        raise missing(path, error) from error


def draw(experiment: Experiment, rows: Rows, path: str | os.PathLike[str]) -> None:
    """Draw what was measured, and the paper's own numbers where they are of the same kind.

    Raises:
        EdBatchError: Matplotlib is not installed, or the file cannot be written.
    """
    check_drawing(path)
    theirs = [{**row, "side": f"{row['side']}{THEIRS}"} for row in experiment.theirs if "side" in row]
    panels = [
        (chart, name, of)
        for chart in experiment.charts
        for name, of in chart.panels([*(row for row in rows if "missing" not in row), *theirs]).items()
    ]
    places = _places([chart.wide for chart, _, _ in panels])
    down = 1 + max((line for line, _ in places), default=0)
    across = max((columns.stop for _, columns in places), default=1)
    figure = figures.Figure(figsize=(max(2, across) * SIZE[0], down * SIZE[1] + 1.2), dpi=110, layout="constrained")
    figure.suptitle(f"{experiment.title}\n{fill(experiment.shows, 50 * max(2, across))}", fontsize=10)
    grid = figure.add_gridspec(down, across)
    names = list(dict.fromkeys(side for chart, _, of in panels for side in chart.sides(of)))
    plain = list(dict.fromkeys(name.removesuffix(THEIRS) for name in names))
    colours = {name: COLOURS[plain.index(name.removesuffix(THEIRS)) % len(COLOURS)] for name in names}
    known: dict[str, Any] = {}
    for (chart, name, of), (line, columns) in zip(panels, places, strict=True):
        axes = figure.add_subplot(grid[line, columns])
        chart.draw(axes, of, colours)
        axes.set_title(name, fontsize=9)
        handles, labels = axes.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
    if known:
        figure.legend(
            list(known.values()), list(known), loc="outside lower center", ncols=min(4, len(known)), frameon=False
        )
    write_figure(figure, path)


def _places(wide: Sequence[bool]) -> list[tuple[int, slice]]:
    """Line and columns of every panel: those that are wide have a line of their own."""
    across = ACROSS if any(wide) else min(ACROSS, max(1, len(wide)))
    found: list[tuple[int, slice]] = []
    line = column = 0
    for own in wide:
        if column and (own or column == across):
            line, column = line + 1, 0
        found.append((line, slice(0, across) if own else slice(column, column + 1)))
        line, column = (line + 1, 0) if own else (line, column + 1)
    return found
