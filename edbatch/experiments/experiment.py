"""What is said of an experiment, all in one place: the paper, its own numbers, what is measured, how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edbatch.experiments.charts import Chart
from edbatch.experiments.papers import Paper

Row = dict[str, Any]  # of a table, by column; "side" says who did it, "missing" why a side has no numbers
Point = dict[str, Any]  # one measurement of an experiment: the columns that its rows begin with


class Setting(NamedTuple):
    """How an experiment is run.

    Attributes:
        quick: whether it is to end within about 20 s on two cores.
        folder: where the data is; None: samples are made up.
    """

    quick: bool = False
    folder: Path | None = None

    @property
    def rounds(self) -> int:
        """Runs that a median is taken over."""
        return 3 if self.quick else 5

    @property
    def limit(self) -> float:
        """Seconds after which no round of a point begins, but two there are."""
        return 2.0 if self.quick else 20.0


class Pivot(NamedTuple):
    """A table with a column for each side.

    Attributes:
        keys: columns that a line begins with.
        value: the column that is shown of each side.
        side: the column that says which.
    """

    keys: tuple[str, ...]
    value: str
    side: str = "side"


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of a paper.

    Attributes:
        name: what it is asked for by.
        paper: whose it is.
        place: which table or figure.
        shows: one sentence.
        points: what is measured, one after the other; what was measured is saved after each.
        measure: the rows of one point.
        charts: how rows are drawn.
        theirs: the paper's own numbers, with the columns that they share with the rows.
        pivot: how rows become a table; None: as they are.
        remark: what has to be known to compare the two.
        figures: what rows come to, beside what was asked for; None: rows say it.
    """

    name: str
    paper: Paper
    place: str
    shows: str
    points: Callable[[Setting], list[Point]]
    measure: Callable[[Setting, Point], list[Row]]
    charts: Sequence[Chart]
    theirs: Sequence[Row] = ()
    pivot: Pivot | None = None
    remark: str = ""
    figures: Callable[[Sequence[Row]], Sequence[Row]] | None = None

    @property
    def title(self) -> str:
        """Name, paper and place."""
        return f"{self.name}: {self.paper.name}, {self.place}"


def grid(**values: Sequence[Any]) -> list[Point]:
    """All combinations, the last column going round fastest.

    Example:
        >>> grid(model=["a", "b"], batch=[1])
        [{'model': 'a', 'batch': 1}, {'model': 'b', 'batch': 1}]
    """
    found: list[Point] = [{}]
    for name, of in values.items():
        found = [{**point, name: value} for point in found for value in of]
    return found
