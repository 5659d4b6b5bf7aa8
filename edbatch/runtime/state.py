"""What belongs to one graph while it runs, and while it is gone back through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.runtime.lines import Lines
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.plan_cache import CachedPlan
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
        known: the cached plan of its structure: nodes and plan are that one's; None: there was none, or the graph has
            grown.
        integers: those of its nodes, in the order of recording, and room for more (int32).
    """

    table: TypeTable
    nodes: Nodes
    plan: GrowingPlan
    arenas: Arenas
    check_nan: bool
    recorded: Mapping[int, str] | None
    known: CachedPlan | None
    integers: np.ndarray

    @property
    def lines(self) -> Lines:
        """Where nodes were recorded, for errors."""
        return Lines(self.recorded, self.nodes)
