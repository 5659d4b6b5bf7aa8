"""Gradients of parameters: what the batches of a type have left side by side, as one product or one sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.cell.body import Value
from edbatch.graph.cell.derivative import Term
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import parameter_of
from edbatch.graph.views import View
from edbatch.kernels.backend import Backend
from edbatch.runtime.backward.type_rows import TypeRows

COPIED = 1 << 22  # bytes at a time


def add_terms(rows: TypeRows, backend: Backend) -> None:
    """Add what a type has left to the gradients of its parameters."""
    table, n, width = rows.table, rows.n, rows.how.flows.width
    of_saved: dict[int, Any] = {}
    for term in rows.how.flows.terms:
        parameter = parameter_of(term.parameter)
        if parameter.frozen:
            continue
        parts = []
        for part in term.parts:
            if isinstance(part, Value):
                if part.node not in of_saved:
                    of_saved[part.node] = _chosen(rows, part.node, backend)
                x = of_saved[part.node]
                parts.append(x if part.view is None else part.view.look(x))
            else:
                shape, size = part.spec.shape, part.spec.size
                found = table if size == width else table[:, part.column : part.column + size]
                parts.append(found if len(shape) == 1 else found.reshape(n, *shape))
        _add_term(parameter, term, parts, rows, backend)


def add_sum(parameter: Parameter, rows: Any, backend: Backend, view: View | None = None) -> None:
    """Add the sum of rows [n, *shape] to a parameter's gradient, or to a part of it."""
    whole = parameter.accumulator()[0]
    if view is None:
        backend.add_all(rows, whole)
    else:
        backend.add_all(rows[:, None], view.look(whole[None]))


def _chosen(rows: TypeRows, node: int, backend: Backend) -> Any:
    """What was saved for the nodes that gradients flowed into: in place if those are all, else copied."""
    assert rows.saved is not None
    x = rows.saved.value(node, 0, len(rows.saved.rows))
    return x if rows.n == len(x) else x[backend.from_host(rows.chosen)]


def _add_term(parameter: Parameter, term: Term, parts: list[Any], rows: TypeRows, backend: Backend) -> None:
    if term.index is not None:
        indices = rows.integers(-1 - term.index) if term.index < 0 else np.full(len(parts[0]), term.index)
        parameter.add_rows(indices, parts[0])
    elif len(parts) == 1:
        add_sum(parameter, parts[0], backend, term.view)
    else:
        left, right = parts
        _add_product(parameter, left, right, backend)


def _add_product(parameter: Parameter, left: Any, right: Any, backend: Backend) -> None:
    """Add the sum over nodes of matrices [n, k, ..] or vectors [n, ..], transposed, times others.

    What lies apart in memory is copied for it, so much at a time that it stays in the cache.
    """
    n = len(left)
    copied = sum(part.nbytes for part in (left, right) if not _is_matrix(part))
    step = max(1, n * COPIED // copied) if copied else max(1, n)
    for begin in range(0, n, step):
        x, y = (_as_matrix(part[begin : begin + step]) for part in (left, right))
        backend.add_product(x, y, *parameter.accumulator())


def _is_matrix(part: Any) -> bool:
    """Whether matrices of nodes lie in memory as one does."""
    return part.ndim == 2 or part.strides[0] == part.shape[1] * part.strides[1]


def _as_matrix(part: Any) -> Any:
    return part if part.ndim == 2 else part.reshape(-1, part.shape[-1])
