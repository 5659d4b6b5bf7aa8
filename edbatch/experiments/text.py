"""Rows as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from edbatch.experiments.experiment import Experiment, Pivot, Row


def shown(experiment: Experiment, rows: Sequence[Row]) -> str:
    """What was measured and the paper's own numbers, as Markdown."""
    pivot, paper = experiment.pivot, experiment.paper
    parts = [f"### {experiment.title}", experiment.shows, _table([row for row in rows if "missing" not in row], pivot)]
    parts += _missing(rows)
    if experiment.figures is not None:
        found = experiment.figures(rows)
        parts.append(_table(found, None))
        if any(row.get("asked") is not None for row in found):
            parts.append("*Asked* is the aim that was set for EdBatch before it was measured.")
    if experiment.theirs:
        parts += [f"Theirs ({paper.where}; {paper.hardware}):", _table(experiment.theirs, pivot)]
    if experiment.remark:
        parts.append(experiment.remark)
    return "\n\n".join(parts)


def number(value: Any) -> str:
    """A cell.

    Example:
        >>> [number(value) for value in (1234, 1234.5, 0.12345, None, "GRU", 2.0)]
        ['1,234', '1,234', '0.123', '', 'GRU', '2']
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _missing(rows: Sequence[Row]) -> list[str]:
    """By reason, the sides that have no numbers."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if "missing" in row:
            found.setdefault(row["missing"], {})[str(row["side"])] = None
    return [f"Not measured: {', '.join(sides)}: {why}." for why, sides in found.items()]


def _table(rows: Sequence[Row], pivot: Pivot | None) -> str:
    if pivot is not None and all(pivot.value in row for row in rows):
        rows = _pivoted(rows, pivot)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[number(row.get(name)) for name in columns] for row in rows]
    numeric = [all(isinstance(row.get(name), int | float | None) for row in rows) for name in columns]
    align = ["right" if of else "left" for of in numeric]
    return str(tabulate(cells, columns, "github", colalign=align if rows else None, disable_numparse=True))


def _pivoted(rows: Sequence[Row], pivot: Pivot) -> list[Row]:
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        keys = {name: row[name] for name in pivot.keys if name in row}
        found.setdefault(tuple(keys.items()), keys)[str(row[pivot.side])] = row[pivot.value]
    return list(found.values())
