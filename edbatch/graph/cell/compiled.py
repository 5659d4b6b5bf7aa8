"""A cell's body after compilation, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edbatch.graph.cell.body import Body

Row = dict[str, str | int]


@dataclass(frozen=True)
class Compiled:
    """What `Columns.compile` makes of a body.

    Args:
        body: what to run.
        splittable: the same, to be split around a recurrence.
        layout: the planned layout, with its variables and batches (a `memory.layout.Layout`).
        storage: rows of `cell.layout()`: every variable, where it lies, its size.
        operands: rows of `cell.explain()`: every result and operand of every batch, and how it is reached.
        batches: how many there are.
        split: how many of them are there because larger ones would have had to copy an operand.
        least: what the number of the others is known not to fall below.
        without: what was switched off; see `Options.without`.
        alone: parameters that were not stacked because another library holds their arrays.
        seconds: of compilation, by step; kernels are compiled when they run first.
    """

    body: Body
    splittable: Body | None = None
    layout: Any = None
    storage: tuple[Row, ...] = ()
    operands: tuple[Row, ...] = ()
    batches: int = 0
    split: int = 0
    least: int = 0
    without: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
