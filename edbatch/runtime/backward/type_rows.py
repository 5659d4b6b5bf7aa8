"""What the way back through one plan computes of one type, side by side."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from edbatch.graph.cell.type_body import node_operands
from edbatch.graph.spec import Spec
from edbatch.runtime.backward.ran import Ran
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import BoundType


class TypeRows:
    """Rows that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        type: the type, `kind` its number.
        one: number of the set of outputs that gradients flow into.
        how: its derivative.
        n: the nodes of which gradients flow into these outputs.
        flat: buffer of the rows [n, how.derivative.width].
        ran: the plan, and what its run has saved.
        nodes: of the graph.
        sets: per node, the number of the set of its outputs that gradients flow into.

    Attributes:
        saved: what the forward run saved of the type, if it did.
        specs: of the operands that are nodes.
    """

    def __init__(
        self, type: BoundType, kind: int, one: int, how: CompiledDerivative, n: int, flat: Any, ran: Ran,
        nodes: Nodes, sets: np.ndarray,
    ) -> None:  # fmt: skip
        self.type = type
        self.how = how
        self.n = n
        self.flat = flat
        self.saved: Saved | None = ran.saved.get(kind)
        self.specs: tuple[Spec, ...] = node_operands(type.type)
        self._kind = kind
        self._ran = ran
        self._nodes = nodes
        self._one = one
        self._sets = sets

    @property
    def table(self) -> Any:
        """The rows [n, width]."""
        width = self.how.derivative.width
        return self.flat[: self.n * width].reshape(self.n, width)

    @cached_property
    def chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self._sets[self._all] == self._one).astype(np.int32)

    def integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, chosen = self._nodes, self._all[self.chosen]
        found: np.ndarray = nodes.args[nodes.starts[chosen] + nodes.counts[chosen] + number]
        return found

    @cached_property
    def _all(self) -> np.ndarray:
        return self._ran.nodes[self._nodes.types[self._ran.nodes] == self._kind]
