"""How element-wise ops are declared: operands broadcast per sample like NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, Sample, declare
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.record import checked_number
from edbatch.graph.spec import Shape


def broadcast_shape(*shapes: Shape) -> Shape:
    """NumPy's broadcasting rule, per sample."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise EdBatchError("shapes do not broadcast") from None


def unary_op(
    name: str, formula: str, gradient: Callable, example: str, scalar: str, **domain: Any
) -> Callable[[Any], Expression]:
    """Declare an element-wise op of one operand; `example` is its value at 0.5, for the docstring."""
    op = declare(
        Op(
            name,
            lambda shape: shape,
            elementwise=True,
            scalar=scalar,
            gradient=gradient,
            samples=tuple(Sample((shape,), **domain) for shape in [(), (5,), (2, 3)]),
        )
    )
    doc = f"""{formula}, element by element.

    Args:
        x: expression of any shape.

    Returns:
        Expression of the shape and dtype of `x`.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.{name}(eb.scalar(0.5))
        >>> print(f"{{y.value():.4f}}")
        {example}
    """

    def function(x: Any) -> Attributes:
        return {}

    return recorded(op)(_public(function, gradient.__module__, name, doc))


def _public(function: Any, module: str, name: str, doc: str) -> Any:
    """A function under the name that users know it by."""
    function.__module__, function.__name__, function.__qualname__, function.__doc__ = module, name, name, doc
    return function


def two_operands(name: str, gradient: Callable, scalar: str, chooses: bool = False, **domain: Any) -> Op:
    """Declare an element-wise op of two operands; `chooses` as of `Op`."""
    shapes: list[tuple[Shape, ...]] = [((), ()), ((4,), (4,)), ((4,), ()), ((2, 3), (3,)), ((2, 1), (1, 3))]
    samples = tuple(Sample(pair, **domain) for pair in shapes)
    return declare(
        Op(
            name,
            broadcast_shape,
            elementwise=True,
            scalar=scalar,
            gradient=gradient,
            chooses=chooses,
            samples=samples,
        )
    )


def binary_op(
    name: str, symbol: str, gradient: Callable, example: str, scalar: str, module: str = "", **domain: Any
) -> Callable[..., Expression]:
    """Declare an element-wise op of two operands.

    Args:
        name, gradient, scalar: see `Op`.
        symbol, example: a formula, and the value at (3, 2), for the docstring.
        module: that it is of; by default that of its gradient.
        domain: of its samples, and `chooses`.
    """
    doc = f"""{symbol}, element by element; shapes broadcast per sample like NumPy's.

    Args:
        a, b: expressions, parameters, numbers or arrays.

    Raises:
        EdBatchError: the shapes do not broadcast, or the operands belong to different graphs.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.{name}(eb.scalar(3), eb.scalar(2))
        >>> print(f"{{y.value():.4f}}")
        {example}
    """

    def function(a: Any, b: Any) -> Attributes:
        return {}

    op = two_operands(name, gradient, scalar, **domain)
    return recorded(op, 2)(_public(function, module or gradient.__module__, name, doc))


def numbered_op(name: str, gradient: Callable, samples: list[dict[str, float]], scalar: str) -> Op:
    """Declare an element-wise op of one operand with attributes that are numbers."""
    return declare(
        Op(
            name,
            lambda shape, **_: shape,
            elementwise=True,
            scalar=scalar,
            gradient=gradient,
            samples=tuple(Sample((shape,), attributes) for attributes in samples for shape in [(5,), (2, 3)]),
        )
    )


def numbers(name: str, x: Any, **given: Any) -> dict[str, float]:
    """Attributes that are numbers, checked."""
    return {key: checked_number(f"{name}({x.spec!r}): {key}", value) for key, value in given.items()}
