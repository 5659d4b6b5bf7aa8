"""Results of a cell whose body is recorded in place of a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.numbers import is_real
from edbatch.graph.cell.structure import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.record import to_node, to_operand


def returned(graph: Columns, found: Any) -> Any:
    """Turn parameters, numbers and arrays that the function returned into expressions, as a cell does."""
    if isinstance(found, Expression) or (found.__class__ is tuple and _are_expressions(found)):
        return found
    leaves, structure = flatten(found)
    if all(isinstance(x, Expression) for x in leaves):
        return found
    return structure.build([_as_expression(graph, x) for x in leaves])


def _are_expressions(found: tuple[Any, ...]) -> bool:
    for x in found:  # noqa: SIM110 (a generator takes three times as long)
        if not isinstance(x, Expression):
            return False
    return True


def _as_expression(graph: Columns, x: Any) -> Any:
    if not (isinstance(x, Parameter | np.ndarray) or is_real(x)):
        return x
    return to_node(graph, to_operand("result", graph, x))
