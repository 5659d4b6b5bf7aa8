"""What belongs to one graph while it runs, and while it is gone back through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.runtime.lines import Lines
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.remembered import Remembered
from edbatch.runtime.type_table import TypeTable


@dataclass(slots=True, eq=False)
class GraphState:
    """A graph's types, nodes and values.

    Attributes:
        table: its types, windows and programs.
        nodes: those that were taken over.
        plan: what has run.
        arenas: the values.
        check_nan: whether to raise after the first batch that computes a NaN.
        recorded: by node where it was recorded; None if that is not noted.
        known: what became of another graph that recorded the same: nodes and plan are its; None: there was none, or the
            graph has grown.
        integers: of its nodes, if they are not those of the graph that is known: of a structure, whose records have
            tags in their places.
    """

    table: TypeTable
    nodes: Nodes
    plan: GrowingPlan
    arenas: Arenas
    check_nan: bool
    recorded: Mapping[int, str] | None
    known: Remembered | None
    integers: np.ndarray | None = None

    @property
    def lines(self) -> Lines:
        """Where nodes were recorded, for errors."""
        return Lines(self.recorded, self.nodes)
