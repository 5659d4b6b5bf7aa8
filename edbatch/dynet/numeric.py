"""Functions that NumPy computes when they are recorded, from their operand's value, and whose gradient is exact.

What is recorded is the tangent: the value found, plus the derivative times what the operand differs from its value,
which is nothing. So no kernel has to know the function, at the price that the graph runs up to here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.implicit import implicit
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.record import parameter_node


def array_of(x: Any) -> np.ndarray:
    """The value of an expression in float64; the entries of a mini-batch along the first axis."""
    if isinstance(x, eb.Parameter):
        return np.asarray(eb.Parameter.value(x), np.float64)
    kind = ExpressionArray if isinstance(x, ExpressionArray) else Expression
    return np.asarray(kind(x.graph, x.id, x.spec).value(), np.float64)


def constant(array: np.ndarray, like: Any) -> Any:
    """Numbers as an input: of a mini-batch, if it is like one."""
    values = np.asarray(array, np.float32)
    return eb.array(values) if isinstance(like, ExpressionArray) else eb.input(values)


def node(x: Any) -> Any:
    """A parameter as an expression."""
    return parameter_node(implicit.recorded_into(), x) if isinstance(x, eb.Parameter) else x


def computed(x: Any, value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Any:
    """A function of each entry, by its value and its derivative."""
    implicit.recorded_into()
    at = array_of(x)
    moved = eb.subtract(x, constant(at, x))
    return eb.add(constant(value(at), x), eb.multiply(constant(slope(at), x), moved))


def linearised(x: Any, value: np.ndarray, at: np.ndarray, jacobian: np.ndarray) -> Any:
    """A function of a vector, by its value and the matrix of its derivatives."""
    moved = eb.subtract(x, constant(at, x))
    return eb.add(constant(value, x), eb.matmul(constant(jacobian, x), moved))
