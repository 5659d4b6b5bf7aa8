"""Gradients of several outputs at once."""

from __future__ import annotations

from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.runtime.graph import listed_expressions, owner_of


def backward(outputs: Any, gradients: Any = None) -> None:
    """Compute the gradients of several expressions in one backward pass, given the gradient of each.

    Parameters get what `Expression.backward` of the sum of all products of an output and its gradient would give them,
    added to what they have; `x.gradient()` then is with respect to that sum. An output may be computed from others, be
    a view, or stand in the list more than once: all that flows to it adds up.

    Args:
        outputs: an expression, an `ExpressionArray`, or a list of them, of one graph.
        gradients: of an expression, an array of its shape; of an array of n expressions, an array [n, *shape]; of a
            list, a list with one entry for each of its entries, where None says that the output has no gradient. None
            in place of all: 1 for each output, which must be a scalar.

    Raises:
        EdBatchError: an output is no expression, of another graph, or no scalar and without a gradient; a gradient has
            another shape, or there are more or fewer than outputs; and as `Expression.backward` does. Parameters then
            have the gradients they had.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> W = eb.ParameterCollection().add_parameters(2, init=1.0)
        >>> with eb.Graph():
        ...     xs = eb.array(np.array([[1.0, 2.0], [3.0, 4.0]]))
        ...     ys, total = W * xs, eb.sum(W)
        >>> eb.backward([ys, total], [np.array([[1, 0], [0, 1]]), 10])
        >>> W.grad(), xs.gradient()
        (array([11., 14.], dtype=float32), array([[1., 0.],
               [0., 1.]], dtype=float32))
    """
    outputs = outputs if isinstance(outputs, Expression) else _some("backward", outputs)
    _owner("backward", outputs).backward(outputs, gradients)


def _some(place: str, outputs: Any) -> list[Any]:
    found = listed_expressions(place, outputs)
    if not found:
        raise EdBatchError(f"{place}: expected at least one output, got none")
    return found


def _owner(place: str, outputs: Any) -> Any:
    return owner_of(f"{place}: output 0", [outputs] if isinstance(outputs, Expression) else outputs)
