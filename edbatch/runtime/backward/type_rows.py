"""What the way back through one plan computes of one type, side by side."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from edbatch.runtime.backward.saving import Saved, Stretch
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.state import GraphState


class TypeRows:
    """Rows that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        how: the derivative.
        table: the rows [n, width].
        stretch: the runs, and what they have saved.
        graph: whose nodes they are.
        sets: per node, the number of the set of its outputs that gradients flow into.
        number, kind: of the set, and of the type.

    Attributes:
        n: how many rows.
        saved: what the forward run saved of the type, if it did.
    """

    def __init__(
        self, how: CompiledDerivative, table: Any, stretch: Stretch, graph: GraphState, sets: np.ndarray, number: int,
        kind: int,
    ) -> None:  # fmt: skip
        self.how, self.table, self.n = how, table, len(table)
        self.saved: Saved | None = stretch.saved.get(kind)
        self._graph, self._nodes, self._sets = graph, graph.nodes, sets
        self._stretch, self._number, self._kind = stretch, number, kind

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self._sets[self._all] == self._number).astype(np.int32)

    def integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, chosen = self._nodes, self._all[self.chosen]
        found: np.ndarray = self._graph.integers[nodes.args[nodes.starts[chosen] + nodes.counts[chosen] + number]]
        return found

    @cached_property
    def _all(self) -> np.ndarray:
        nodes = self._stretch.nodes
        found: np.ndarray = nodes[self._nodes.types[nodes] == self._kind]
        return found
