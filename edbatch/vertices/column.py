"""External inputs of vertices, as columns of integers: ids of expressions, or integers that index something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, shown
from edbatch.graph.array import array
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, is_integers
from edbatch.graph.model.exchange import refuse_masked
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.record import array_inputs
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS


@dataclass(slots=True, eq=False)
class Column:
    """One input: ids of an expression for each vertex of a kind; the view that all are seen through, or None."""

    values: np.ndarray
    spec: Spec
    view: int | None = 0


def columns_of(graph: Columns, place: str, given: Any, n: int) -> Any:
    """What vertices of a kind pull, nested as it was given: columns, and expressions and parameters that all share.

    Raises:
        EdBatchError: a column has not an entry for each of n vertices, or is of something else.
    """
    if isinstance(given, tuple):
        parts = [columns_of(graph, f"{place}, part {at}", one, n) for at, one in enumerate(given)]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if isinstance(given, dict):
        return {key: columns_of(graph, f"{place}, {key!r}", one, n) for key, one in given.items()}
    if isinstance(given, Expression | Parameter) and not isinstance(given, ExpressionArray):
        return given
    found = _entries(graph, place, given)
    if len(found.values) != n:
        raise EdBatchError(f"{place}: expected an entry for each of {n} vertices, got {len(found.values)}")
    return found


def _entries(graph: Columns, place: str, given: Any) -> Column | Integers:
    if isinstance(given, list):
        try:
            listed = np.asarray(given)
        except Exception:  # of expressions, say
            listed = np.empty((), object)
        given = listed if listed.ndim and listed.dtype.kind in "iufb" else _joined(place, given)
    if isinstance(given, ExpressionArray):
        if given.graph.base is not graph:
            raise EdBatchError(f"{place}: expressions of another graph")
        return _column(given.ids, given.spec)
    if isinstance(given, np.ndarray) and given.ndim:
        refuse_masked(given, place)
        if is_integers(given):
            return Integers(given)
        return _column(*array_inputs(graph, given))
    raise EdBatchError(
        f"{place}: expected an array with an entry for each vertex (integers, numbers or an ExpressionArray), a list, "
        f"or one expression for all, got {shown(given)}"
    )


def _column(values: np.ndarray, spec: Spec) -> Column:
    views = values >> NODE_BITS
    return Column(values, spec, int(views[:1].sum()) if (views == views[:1]).all() else None)


def _joined(place: str, given: list[Any]) -> Any:
    try:
        return array(given)
    except EdBatchError as error:
        raise EdBatchError(f"{place}: {error}") from None


def seen_alike(kinds: np.ndarray, ranks: np.ndarray, inputs: list[Any]) -> tuple[np.ndarray, list[tuple[int, Any]]]:
    """Classes of vertices of one kind whose inputs are seen through the same views.

    Args:
        kinds, ranks: per vertex its kind, and how many of that kind come before it.
        inputs: by kind.

    Returns:
        Per vertex its class; per class its kind, and the kind's inputs with these views.
    """
    flat = list(map(flatten, inputs))
    if all(x.view is not None for leaves, _ in flat for x in leaves if isinstance(x, Column)):
        return kinds, list(enumerate(inputs))
    classes = np.empty(len(kinds), np.int64)
    found: list[tuple[int, Any]] = []
    for kind, (given, (leaves, tree)) in enumerate(zip(inputs, flat, strict=True)):
        mixed = [x for x in leaves if isinstance(x, Column) and x.view is None]
        (vertices,) = (kinds == kind).nonzero()
        if not mixed:
            classes[vertices] = len(found)
            found.append((kind, given))
            continue
        views = np.array([x.values >> NODE_BITS for x in mixed])
        combinations, class_of = np.unique(views, axis=1, return_inverse=True)
        classes[vertices] = len(found) + class_of.reshape(-1)[ranks[vertices]]
        for combination in combinations.T.tolist():
            seen = {id(x): replace(x, view=view) for x, view in zip(mixed, combination, strict=True)}
            found.append((kind, tree.build([seen.get(id(x), x) for x in leaves])))
    return classes, found
