"""Gradients of parameters: what the batches of a type have left side by side, as one product or one sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.graph.cell.body import Value
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import parameter_of
from edbatch.graph.views import View
from edbatch.kernels.backend import Backend
from edbatch.runtime.backward.flow import FlowColumns
from edbatch.runtime.backward.rules import GradientRule
from edbatch.runtime.backward.saving import Ran, Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

COPIED = 1 << 22  # bytes at a time
# From a parameter to the one that its gradient is added to; None: it is not wanted.
Gatherer = Callable[[Parameter], Parameter | None]


def unless_frozen(parameter: Parameter) -> Parameter | None:
    """Return the parameter itself, whose gradients add up over calls of `backward`."""
    return None if parameter.frozen else parameter


class TypeRows(NamedTuple):
    """Rows that a derivative computes, one for each node of a type and set of live outputs, as they have run.

    Attributes:
        how: the derivative.
        arena, first, n: where its rows are.
        saved: what the type's nodes saved; chosen: which of them these are; None: all.
        integers: by the number of a node's integer, where it is among the graph's.
    """

    how: CompiledDerivative
    arena: int
    first: int
    n: int
    saved: Saved | None
    chosen: np.ndarray | None
    integers: dict[int, np.ndarray]


def type_rows(
    rule: GradientRule, arena: int, used: np.ndarray, flow: FlowColumns, stretch: Ran, graph: Evaluation
) -> TypeRows:
    """What a rule leaves for parameters; `used`: per arena, how many rows there were before."""
    how, n, saved, nodes = rule.how, flow.rows.item(rule.set), stretch.saved.get(rule.kind), graph.nodes
    assert how is not None
    numbers = {-1 - term.index for term in how.terms if term.index is not None and term.index < 0}
    chosen, integers = None, dict[int, np.ndarray]()
    if numbers or (saved is not None and n < saved.n):
        all_nodes = graph.plan.nodes[stretch.begin.nodes : stretch.end.nodes]
        of_type = all_nodes[nodes.types[all_nodes] == rule.kind]
        chosen = np.flatnonzero(flow.sets[of_type] == rule.set).astype(np.int32)
        ends = nodes.starts[of_type[chosen]] + nodes.counts[of_type[chosen]]
        integers = {number: nodes.args[ends + number] for number in numbers}
        chosen = chosen if saved is not None and n < saved.n else None
    return TypeRows(how, arena, used.item(arena), n, saved, chosen, integers)


def add_terms(rows: TypeRows, table: Any, graph: Evaluation, gatherer: Gatherer) -> None:
    """Add what a type has left, rows [n, width], to the gradients of its parameters."""
    backend, width, n = graph.table.backend, rows.how.width, rows.n
    of_saved: dict[int, Any] = {}
    for term in rows.how.terms:
        parameter = gatherer(parameter_of(term.parameter))
        if parameter is None:
            continue
        parts = []
        for part in term.parts:
            if isinstance(part, Value):
                x = of_saved.get(part.node)
                if x is None:
                    assert rows.saved is not None
                    x = rows.saved.value(part.node, graph.arenas)
                    x = of_saved[part.node] = x if rows.chosen is None else x[backend.from_host(rows.chosen)]
                parts.append(x if part.view is None else part.view.look(x))
            else:
                shape, size = part.spec.shape, part.spec.size
                found = table if size == width else table[:, part.column : part.column + size]
                parts.append(found if len(shape) == 1 else found.reshape(n, *shape))
        if term.index is not None:
            indices = np.full(n, term.index) if term.index >= 0 else graph.integers[rows.integers[-1 - term.index]]
            parameter.add_rows(indices, parts[0])
        elif len(parts) == 1:
            add_sum(parameter, parts[0], backend, term.view)
        else:
            _add_product(parameter, parts[0], parts[1], backend)


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
        whole, fresh = parameter.accumulator()
        if whole.strides[1] == whole.itemsize and whole.strides[0] != whole.itemsize:
            rows, columns, whole = columns, rows, whole.T
        backend.add_product(rows, columns, whole, fresh)


def _is_matrix(part: Any) -> bool:
    """Whether matrices of nodes lie in memory as one does."""
    return part.ndim == 2 or part.strides[0] == part.shape[1] * part.strides[1]
