"""Gradients of several outputs at once."""

from __future__ import annotations

from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.operand import Operand
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
    owner, outputs = _owned("backward", outputs)
    owner.backward(outputs, gradients)


def gradients(
    outputs: Any, of: Any, gradients: Any = None, *, sparse: bool = False, unused_as_none: bool = False
) -> list[Any]:
    """The gradients of expressions with respect to parameters and other expressions, computed in one backward pass.

    They are those of the sum of all products of an output and its gradient. Nothing changes: parameters keep the
    gradients they have, and `x.gradient()` is still with respect to what `backward` was last called on (it goes back
    once more at the next call). A parameter or an expression that no output depends on has a gradient of zeros.

    Args:
        outputs: see `edbatch.backward`.
        of: a list of parameters, look-up tables, expressions and arrays of expressions, or one of these.
        gradients: see `edbatch.backward`.
        sparse: whether the gradient of a look-up table is given by its rows.
        unused_as_none: whether a parameter that no output depends on has None as its gradient, unless a cell has put
            it beside others.

    Returns:
        Per entry of `of`, an array (on the host, writable, the caller's own) of its shape and dtype, for a scalar
        expression a NumPy scalar; of an array of n expressions [n, *shape]; of a look-up table, where `sparse` is set,
        which rows have a gradient (int64 [k], ascending, each once) and the gradients [k, *entry].

    Raises:
        EdBatchError: an entry is a frozen parameter, no parameter and no expression, or of another graph; and as
            `edbatch.backward` does.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W, table = model.add_parameters(2, init=1.0), model.add_lookup_parameters((5, 2), init=2.0)
        >>> with eb.Graph():
        ...     x = eb.input([3.0, 4.0])
        ...     y = W * x * table[1]
        >>> eb.gradients(y, [W, x], [1, 10])
        [array([ 6., 80.], dtype=float32), array([ 2., 20.], dtype=float32)]
        >>> eb.gradients(y, table, [1, 10], sparse=True)
        [(array([1]), array([[ 3., 40.]], dtype=float32))]
        >>> W.has_grad
        False
    """
    owner, outputs = _owned("gradients", outputs)
    asked = [of] if isinstance(of, Operand) else listed_expressions("gradients", of)
    found: list[Any] = owner.gradients(outputs, asked, gradients, sparse, unused_as_none)
    return found


def _owned(place: str, outputs: Any) -> tuple[Any, Any]:
    """The graph of outputs, and these: one, or a list."""
    given = outputs if isinstance(outputs, Expression) else listed_expressions(place, outputs)
    listed = [given] if isinstance(given, Expression) else given
    if not listed:
        raise EdBatchError(f"{place}: expected at least one output, got none")
    return owner_of(f"{place}: output 0", listed), given
