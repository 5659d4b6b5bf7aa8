"""What belongs to one graph while it runs, and while it is gone back through."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.memory.plan.arenas import Arenas
from edbatch.runtime.lines import Lines
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import TypeTable


class GraphState(NamedTuple):
    """A graph's types, nodes and values.

    Attributes:
        table: its types, windows and programs.
        nodes: those that were taken over.
        arenas: the values.
        check_nan: whether to raise after the first batch that computes a NaN.
        lines: where nodes were recorded, for errors.
    """

    table: TypeTable
    nodes: Nodes
    arenas: Arenas
    check_nan: bool
    lines: Lines
