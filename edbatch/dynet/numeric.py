"""Between NumPy and expressions: values, constants and noise of mini-batches, and parameters as expressions."""

from __future__ import annotations

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
