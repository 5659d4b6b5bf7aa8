"""What the way back through one plan computes of one type, side by side."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from edbatch.runtime.backward.ran import Ran
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import BoundType


class NodesOf(NamedTuple):
    """The nodes of a type in a plan of which gradients flow into one set of outputs.

    Attributes:
        ran: the plan, and what its run has saved.
        nodes: of the graph.
        sets: per node, the number of the set of its outputs that gradients flow into.
        kind: number of the type.
        one: number of the set.
        n: how many.
    """

    ran: Ran
    nodes: Nodes
    sets: np.ndarray
    kind: int
    one: int
    n: int


class TypeRows:
    """Rows that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        type: of the nodes.
        how: its derivative.
        flat: buffer of the rows [n, how.derivative.width].
        of: the nodes.

    Attributes:
        n: how many nodes.
        saved: what the forward run saved of the type, if it did.
    """

    def __init__(self, type: BoundType, how: CompiledDerivative, flat: Any, of: NodesOf) -> None:
        self.type = type
        self.how = how
        self.flat = flat
        self.n = of.n
        self.saved: Saved | None = of.ran.saved.get(of.kind)
        self._of = of

    @property
    def table(self) -> Any:
        """The rows [n, width]."""
        width = self.how.derivative.width
        return self.flat[: self.n * width].reshape(self.n, width)

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self._of.sets[self._all] == self._of.one).astype(np.int32)

    def integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, chosen = self._of.nodes, self._all[self.chosen]
        found: np.ndarray = nodes.args[nodes.starts[chosen] + nodes.counts[chosen] + number]
        return found

    @cached_property
    def _all(self) -> np.ndarray:
        ran = self._of.ran
        found: np.ndarray = ran.nodes[self._of.nodes.types[ran.nodes] == self._of.kind]
        return found
