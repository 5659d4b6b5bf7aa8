"""How element-wise ops are declared, whose operands broadcast per sample like NumPy's; and examples in docstrings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, Sample, declare
from edbatch.graph.op_callers import binary, unary
from edbatch.graph.record import checked_number
from edbatch.graph.spec import Shape

_EXAMPLE = re.compile(r"^( *)Example: (.*) -> (.*)$", re.MULTILINE)
_SHOWN = r"""\1Example:
\1    >>> import edbatch as eb
\1    >>> with eb.Graph():
\1    ...     print(\2.value())
\1    \3"""


def with_example(text: str | None) -> str | None:
    """A docstring with its line `Example: expression -> value` written out as a doctest; -OO leaves none."""
    return text and _EXAMPLE.sub(_SHOWN, text)


def broadcast_shape(*shapes: Shape) -> Shape:
    """NumPy's broadcasting rule, per sample."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise EdBatchError("shapes do not broadcast") from None


_ONE = [((),), ((5,),), ((2, 3),)]
TWO = [((), ()), ((4,), (4,)), ((4,), ()), ((2, 3), (3,)), ((2, 1), (1, 3))]


def elementwise_op(
    name: str, scalar: str, gradient: Any, *attributes: dict[str, float], shapes: Any = _ONE, **more: Any
) -> Op:
    """Declare an op that is tested on operands of these shapes, with each of these attributes, which are numbers.

    `more`: `low` and `high` of its samples, and columns of `Op`.
    """
    domain = {key: more.pop(key) for key in ("low", "high") if key in more}
    samples = tuple(Sample(operands, given, **domain) for given in attributes or ({},) for operands in shapes)
    shape = broadcast_shape if len(shapes[0]) > 1 else lambda shape, **_: shape
    return declare(Op(name, shape, elementwise=True, scalar=scalar, gradient=gradient, samples=samples, **more))


def unary_op(
    name: str, formula: str, gradient: Callable, example: str, scalar: str, **domain: Any
) -> Callable[[Any], Expression]:
    """Declare an element-wise op of one operand.

    Args:
        formula, example: what it computes, and its value at 0.5, for the docstring.
        domain: `low` and `high` of its samples.
    """
    doc = f"""{formula}, element by element.

    Args:
        x: expression of any shape.

    Returns:
        Expression of the shape and dtype of `x`.

    Example: eb.{name}(eb.scalar(0.5)) -> {example}
    """
    call: Any = unary(elementwise_op(name, scalar, gradient, **domain))
    call.__doc__, call.__module__ = doc, gradient.__module__
    return call


def binary_op(
    name: str, formula: str, gradient: Callable, example: str, scalar: str, **more: Any
) -> Callable[..., Expression]:
    """Declare an element-wise op of two operands; `example` is its value at (3, 2), otherwise as `unary_op`."""
    doc = f"{formula}, element by element; shapes broadcast per sample like NumPy's"
    given = f"eb.{name}(eb.scalar(3), eb.scalar(2)) -> {example}"
    return row_of_two(
        elementwise_op(name, scalar, gradient, shapes=TWO, **more), doc, given, "edbatch.graph.ops.elementwise"
    )


def row_of_two(op: Op, formula: str, example: str, module: str = "") -> Callable[[Any, Any], Expression]:
    """The caller of an op of two operands; for its docstring what it computes, and an example as in `with_example`."""
    doc = f"""{formula}.

    Args:
        a, b: expressions, parameters, numbers or arrays.

    Raises:
        EdBatchError: the shapes do not fit, or the operands belong to different graphs.

    Example: {example}
    """
    call: Any = binary(op)
    call.__doc__, call.__module__ = doc, module or op.shape.__module__
    return call


def numbers(name: str, x: Any, **given: Any) -> dict[str, float]:
    """Attributes that are numbers, checked."""
    return {key: checked_number(f"{name}({x.spec!r}): {key}", value) for key, value in given.items()}
