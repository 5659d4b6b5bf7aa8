"""From expressions to an array of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.columns import Columns, current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.operand import Operand
from edbatch.graph.record import array_inputs, entries_of, to_own_node
from edbatch.graph.spec import Spec


def array(parts: Any) -> ExpressionArray:
    """Expressions and arrays of expressions, one after the other, as one array; records nothing.

    Args:
        parts: expressions of one graph and shape, and `ExpressionArray`s of such; parameters, numbers and NumPy arrays
            become expressions. Or an array of NumPy's, PyTorch's, ...: each row an input of the current graph; or an
            expression: each row.

    Raises:
        EdBatchError: there is none, or they are of several shapes, dtypes or graphs; the part is named.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> with eb.Graph():
        ...     print(eb.array([eb.array(np.array([[1.0, 2.0], [3.0, 4.0]])), eb.ones(2)]).value())
        [[1. 2.] [3. 4.] [1. 1.]]
    """
    if hasattr(parts, "__dlpack__") and not isinstance(parts, Operand | np.ndarray):
        parts = from_dlpack(parts, "array")
    if parts.__class__ is np.ndarray and parts.ndim:
        graph = current_graph()
        rows, of_each = array_inputs(graph, parts)
        return array_graph(graph, len(rows)).leaf(rows, of_each)
    listed = entries_of(parts)
    graph = _graph_of(listed)
    ids: list[Any] = []
    spec: Spec | None = None
    for at, x in enumerate(listed):
        one = x if isinstance(x, ExpressionArray) else to_own_node("array", graph, x)
        if spec is not None and one.spec is not spec:
            raise EdBatchError(f"array: expected parts of one shape, got {spec!r} at 0 and {one.spec!r} at {at}")
        spec = one.spec
        ids.append(one.ids if isinstance(one, ExpressionArray) else [one.id])
    if spec is None:
        raise EdBatchError("array([]): expected at least one expression, or array of expressions")
    joined = np.concatenate(ids).astype(np.int64)
    return array_graph(graph, len(joined)).leaf(joined, spec)


def _graph_of(parts: list[Any]) -> Columns:
    """The graph that the expressions are of, alone or in arrays; the current one if there is none."""
    graph = None
    for at, x in enumerate(parts):
        if not isinstance(x, Expression):
            continue
        own: Columns = x.graph.base if isinstance(x, ExpressionArray) else x.graph
        if own is not (graph or own):
            raise EdBatchError(f"array: part {at} is of another graph")
        graph = own
    return current_graph() if graph is None else graph
