"""What the way back through one plan computes of one type, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edbatch.runtime.backward.saving import Ran, Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import BoundType


@dataclass
class TypeRows:
    """Rows that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        type: of the nodes.
        how: its derivative.
        flat: buffer of the rows [n, how.derivative.width].
        ran: the plan, and what its run has saved.
        nodes: of the graph.
        sets: per node, the number of the set of its outputs that gradients flow into.
        number, kind: of the set, and of the type.
        n: how many nodes.
    """

    type: BoundType
    how: CompiledDerivative
    flat: Any
    ran: Ran
    nodes: Nodes
    sets: np.ndarray
    number: int
    kind: int
    n: int

    @property
    def saved(self) -> Saved | None:
        """What the forward run saved of the type, if it did."""
        return self.ran.saved.get(self.kind)

    @property
    def table(self) -> Any:
        """The rows [n, width]."""
        width = self.how.derivative.width
        return self.flat[: self.n * width].reshape(self.n, width)

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self.sets[self._all] == self.number).astype(np.int32)

    def integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, chosen = self.nodes, self._all[self.chosen]
        found: np.ndarray = nodes.args[nodes.starts[chosen] + nodes.counts[chosen] + number]
        return found

    @cached_property
    def _all(self) -> np.ndarray:
        ran = self.ran.nodes
        found: np.ndarray = ran[self.nodes.types[ran] == self.kind]
        return found
