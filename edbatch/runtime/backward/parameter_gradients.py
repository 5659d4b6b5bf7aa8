"""Gradients of parameters: what the batches of a type have left side by side, as one product or one sum."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from edbatch.graph.cell.body import Value
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import parameter_of
from edbatch.graph.views import View
from edbatch.kernels.backend import Backend
from edbatch.runtime.backward.saving import Ran, Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative
from edbatch.runtime.state import GraphState

COPIED = 1 << 22  # bytes at a time
# From a parameter to the one that its gradient is added to; None: it is not wanted.
Gatherer = Callable[[Parameter], Parameter | None]


def unless_frozen(parameter: Parameter) -> Parameter | None:
    """Return the parameter itself, whose gradients add up over calls of `backward`."""
    return None if parameter.frozen else parameter


class TypeRows:
    """Rows [n, width] that a derivative computes, one for each node of a type and set of outputs, as they have run.

    Args:
        how, table: the derivative, and the rows.
        sets: see `FlowColumns`.
        number, kind: of the set, and of the type.
    """

    def __init__(
        self, how: CompiledDerivative, table: Any, stretch: Ran, graph: GraphState, sets: np.ndarray, number: int,
        kind: int,
    ) -> None:  # fmt: skip
        self._how, self._table, self.n = how, table, len(table)
        self._saved: Saved | None = stretch.saved.get(kind)
        self._graph, self._nodes, self._sets = graph, graph.nodes, sets
        self._stretch, self._number, self._kind = stretch, number, kind
        self._backend = graph.table.backend

    def add_terms(self, gatherer: Gatherer) -> None:
        """Add what the type has left to the gradients of its parameters."""
        table, n, width = self._table, self.n, self._how.width
        of_saved: dict[int, Any] = {}
        for term in self._how.terms:
            parameter = gatherer(parameter_of(term.parameter))
            if parameter is None:
                continue
            parts = []
            for part in term.parts:
                if isinstance(part, Value):
                    if part.node not in of_saved:
                        of_saved[part.node] = self._of_saved(part.node)
                    x = of_saved[part.node]
                    parts.append(x if part.view is None else part.view.look(x))
                else:
                    shape, size = part.spec.shape, part.spec.size
                    found = table if size == width else table[:, part.column : part.column + size]
                    parts.append(found if len(shape) == 1 else found.reshape(n, *shape))
            if term.index is not None:
                indices = self._integers(-1 - term.index) if term.index < 0 else np.full(len(parts[0]), term.index)
                parameter.add_rows(indices, parts[0])
            elif len(parts) == 1:
                add_sum(parameter, parts[0], self._backend, term.view)
            else:
                left, right = parts
                _add_product(parameter, left, right, self._backend)

    def _of_saved(self, node: int) -> Any:
        """What was saved for the nodes that gradients flowed into: in place if those are all, else copied."""
        assert self._saved is not None
        x = self._saved.value(node, self._graph.arenas)
        return x if self.n == len(x) else x[self._backend.from_host(self._chosen)]

    def _integers(self, number: int) -> np.ndarray:
        """One of the nodes' integers [n]."""
        nodes, chosen = self._nodes, self._all[self._chosen]
        return self._graph.integers[nodes.args[nodes.starts[chosen] + nodes.counts[chosen] + number]]

    @cached_property
    def _chosen(self) -> np.ndarray:
        """Which of the type's nodes these are, among all that have run; int32 [n]."""
        return np.flatnonzero(self._sets[self._all] == self._number).astype(np.int32)

    @cached_property
    def _all(self) -> np.ndarray:
        nodes = self._graph.plan.nodes[self._stretch.begin.nodes : self._stretch.end.nodes]
        return nodes[self._nodes.types[nodes] == self._kind]


def add_sum(parameter: Parameter, rows: Any, backend: Backend, view: View | None = None) -> None:
    """Add the sum of rows [n, *shape] to a parameter's gradient, or to a part of it."""
    whole = parameter.accumulator()[0]
    if view is None:
        backend.add_all(rows, whole)
    else:
        backend.add_all(rows[:, None], view.look(whole[None]))


def _add_product(parameter: Parameter, left: Any, right: Any, backend: Backend) -> None:
    """Add the sum over nodes of matrices [n, k, ..] or vectors [n, ..], transposed, times others.

    What lies apart in memory is copied for it, so much at a time that it stays in the cache.
    """
    n = len(left)
    copied = (0 if _is_matrix(left) else left.nbytes) + (0 if _is_matrix(right) else right.nbytes)
    step = max(1, n * COPIED // copied if copied else n)
    for begin in range(0, n, step):
        x, y = left[begin : begin + step], right[begin : begin + step]
        rows, columns = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        backend.add_product(rows, columns, *parameter.accumulator())


def _is_matrix(part: Any) -> bool:
    """Whether matrices of nodes lie in memory as one does."""
    return part.ndim == 2 or part.strides[0] == part.shape[1] * part.strides[1]
