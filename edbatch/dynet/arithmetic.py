"""What operators mean in DyNet: `*` is the matrix product, shapes broadcast from the left, (n,) is a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.op import OPS, Op
from edbatch.graph.op_callers import binary
from edbatch.graph.operand import Operand

_SCALARS = ((), (1,))


def dim_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """DyNet's dimensions: a number has one entry.

    Example:
        >>> dim_of(()), dim_of((2, 3))
        ((1,), (2, 3))
    """
    return tuple(shape) or (1,)


def with_axes(x: Any, axes: int) -> Any:
    """An expression with at least so many axes, of size 1 behind its own."""
    shape = x.spec.shape
    return x if len(shape) >= axes else eb.reshape(x, (*shape, *(1,) * (axes - len(shape))))


def broadcast(op: Op) -> Callable[[Any, Any], Expression]:
    """An element-wise op of two operands; of the one with fewer axes, axes of size 1 follow the others.

    Recording takes as long as EdBatch's own: what differs is looked at when two shapes first meet.
    """

    def otherwise(a: Any, b: Any) -> Expression | None:
        if not isinstance(a, Operand) or not isinstance(b, Operand):
            return None
        left, right = a.spec.shape, b.spec.shape
        if len(left) == len(right) or left in _SCALARS or right in _SCALARS:
            return None
        axes = max(len(left), len(right))
        return call(with_axes(a, axes), with_axes(b, axes))

    call = binary(op, otherwise)
    return call


add, subtract, multiply, divide = (broadcast(OPS[name]) for name in ("add", "subtract", "multiply", "divide"))


def _product(a: Any, b: Any) -> Expression | None:
    """What is no product of matrices: with a number; of a column and a row."""
    if not isinstance(a, Operand) or not isinstance(b, Operand):
        return multiply(a, b)
    left, right = a.spec.shape, b.spec.shape
    if left in _SCALARS or right == () or (right == (1,) and left[-1] != 1):
        return multiply(a, b)
    if len(left) == 1:
        a, left = with_axes(a, 2), (left[0], 1)
        if right[0] == 1:
            return product(a, b)
    if max(len(left), len(right)) > 2 or left[1] != right[0]:
        raise EdBatchError(f"Mismatched input dimensions in MatrixMultiply: [{left} {right}]")
    return None


product = binary(OPS["matmul"], _product)


def power(x: Any, y: Any) -> Any:
    """x to the power of a number, which may be an expression of one entry."""
    return eb.power(x, eb.reshape(y, ()) if isinstance(y, Operand) and y.spec.shape else y)


def _reflected(call: Callable[[Any, Any], Expression]) -> Callable[[Any, Any], Expression]:
    return lambda self, other: call(other, self)


def with_operators(kind: type) -> type:
    """Give a class of operands DyNet's operators."""
    for name, call in {"add": add, "sub": subtract, "mul": product, "truediv": divide}.items():
        setattr(kind, f"__{name}__", call)
        setattr(kind, f"__r{name}__", _reflected(call))
    return kind
