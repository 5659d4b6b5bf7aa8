"""Gradients of parameters: what the batches of a type have left side by side, as one product or one sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.graph.body import Value
from edbatch.graph.derivative import Term
from edbatch.graph.node_type import parameter_of
from edbatch.graph.parameters import LookupParameters, Parameter
from edbatch.kernels.segment_sums import add_all, add_each
from edbatch.runtime.cell_program import address_of

if TYPE_CHECKING:
    from edbatch.runtime.backward_plan import TypeRows


def add_terms(rows: TypeRows) -> None:
    """Add what a type has left to the gradients of its parameters."""
    n, width = rows.n, rows.how.derivative.width
    table = rows.flat[: n * width].reshape(n, width)
    of_saved: dict[int, Any] = {}
    for term in rows.how.derivative.terms:
        parts = []
        for part in term.parts:
            if isinstance(part, Value):
                if part.node not in of_saved:
                    of_saved[part.node] = _chosen(rows, part.node)
                x = of_saved[part.node]
                parts.append(x if part.view is None else part.view.look(x))
            else:
                end = part.column + part.spec.size
                parts.append(table[:, part.column : end].reshape(n, *part.spec.shape))
        _add_term(parameter_of(term.parameter), term, parts, rows.payload)


def add_sum(parameter: Parameter, rows: Any) -> None:
    """Add the sum of rows [n, *shape] to a parameter's gradient."""
    whole, fresh = parameter.accumulator()
    if _by_address(rows) and whole.flags.c_contiguous:
        if fresh:
            whole[...] = 0
        add_all(len(rows), address_of(rows), rows.strides[0] // rows.itemsize, address_of(whole), whole.size)
    elif fresh:
        np.sum(rows, axis=0, out=whole)
    else:
        whole += rows.sum(axis=0)


def _by_address(rows: Any) -> bool:
    """Whether compiled loops can read rows: float32, each row's entries side by side."""
    return bool(rows.dtype == np.float32 and len(rows) and rows[0].flags.c_contiguous)


def _merged(indices: Any, rows: Any) -> tuple[Any, Any]:
    """Each index once, ascending, its rows [n, *entry] added up in their order."""
    found, to = np.unique(indices, return_inverse=True)
    total = np.zeros((len(found), *rows.shape[1:]), rows.dtype)
    if _by_address(rows):
        width = total[0].size
        add_each(len(rows), address_of(rows), rows.strides[0] // rows.itemsize, to, address_of(total), width)
    else:
        np.add.at(total, to, rows)
    return found, total


def _chosen(rows: TypeRows, node: int) -> Any:
    """What was saved for the nodes that gradients flowed into: in place if those are all, else copied."""
    assert rows.saved is not None
    x = rows.saved.value(node, 0, len(rows.saved.rows))
    if rows.n == len(x):
        return x
    return x[
        np.concatenate(
            [begin + (np.arange(n) if chosen is None else chosen) for begin, n, chosen in reversed(rows.chosen)]
        )
    ]


def _add_term(parameter: Parameter, term: Term, parts: list[Any], payload: list[list[Any]]) -> None:
    if term.index is not None:
        assert isinstance(parameter, LookupParameters)
        if term.index < 0:
            indices = np.concatenate([integers[-1 - term.index] for integers in reversed(payload)])
        else:
            indices = np.full(len(parts[0]), term.index)
        parameter.add_rows(*_merged(indices, parts[0]))
    elif len(parts) == 1:
        add_sum(parameter, parts[0])
    else:
        left, right = (part.reshape(-1, part.shape[-1]) for part in parts)
        whole, fresh = parameter.accumulator()
        # Matrices are stored by columns: the transpose is what lies row by row.
        if fresh:
            np.matmul(right.T, left, out=whole.T)
        else:
            whole += np.matmul(right.T, left).T
