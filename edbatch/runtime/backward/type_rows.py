"""What the way back through one plan computes of one type, side by side."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from edbatch.runtime.backward.saving import Saved, Stretch
from edbatch.runtime.backward.way import Way
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.nodes import Nodes


class TypeRows:
    """Rows that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        way: that was gone.
        how: the derivative.
        table: the rows [n, width].
        stretch: the runs, and what they have saved.
        nodes: of the graph.
        sets: per node, the number of the set of its outputs that gradients flow into.
        number, kind: of the set, and of the type.

    Attributes:
        n: how many rows.
        saved: what the forward run saved of the type, if it did.
    """

    def __init__(
        self, way: Way, how: CompiledDerivative, table: Any, stretch: Stretch, nodes: Nodes, sets: np.ndarray,
        number: int, kind: int,
    ) -> None:  # fmt: skip
        self.how, self.table, self.n, self._way = how, table, len(table), way
        self.saved: Saved | None = stretch.saved.get(kind)
        self._nodes, self._sets = nodes, sets
        self._stretch, self._number, self._kind = stretch, number, kind

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self._sets[self._all] == self._number).astype(np.int32)

    def integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, known = self._nodes, self._way.integers
        at = known.get((self._number, number))
        if at is None:
            chosen = self._all[self.chosen]
            at = known[self._number, number] = nodes.starts[chosen] + nodes.counts[chosen] + number
        found: np.ndarray = nodes.args[at]
        return found

    @cached_property
    def _all(self) -> np.ndarray:
        nodes = self._stretch.nodes
        found: np.ndarray = nodes[self._nodes.types[nodes] == self._kind]
        return found
