"""What operators mean in DyNet: `*` is the matrix product, shapes broadcast from the left, (n,) is a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.dynet.implicit import DynetError
from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.fast import binary
from edbatch.graph.op import OPS, Op
from edbatch.graph.operand import Operand

_SCALARS = ((), (1,))


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
        return call(_with_axes(a, axes), _with_axes(b, axes))

    call = binary(op, otherwise)
    return call


def _with_axes(x: Any, axes: int) -> Any:
    missing = axes - len(x.spec.shape)
    return eb.reshape(x, (*x.spec.shape, *(1,) * missing)) if missing else x


add, subtract, multiply, divide = (broadcast(OPS[name]) for name in ("add", "subtract", "multiply", "divide"))


def _product(a: Any, b: Any) -> Expression | None:
    """What is no product of matrices: with a number; of a column and a row."""
    if not isinstance(a, Operand) or not isinstance(b, Operand):
        return multiply(a, b)
    left, right = a.spec.shape, b.spec.shape
    if left in _SCALARS or right == () or (right == (1,) and left[-1] != 1):
        return multiply(a, b)
    if len(left) == 1:
        a, left = _with_axes(a, 2), (left[0], 1)
        if right[0] == 1:
            return product(a, b)
    if max(len(left), len(right)) > 2 or left[1] != right[0]:
        raise EdBatchError(f"Mismatched input dimensions in MatrixMultiply: [{left} {right}]")
    return None


product = binary(OPS["matmul"], _product)


def power(a: Any, b: Any) -> Expression:
    """a ** b; the exponent is a number, or an expression of one entry."""
    return eb.power(a, b)


def _negated(x: Any) -> Expression:
    return eb.neg(x)


def _reflected(call: Callable[[Any, Any], Expression]) -> Callable[[Any, Any], Expression]:
    return lambda self, other: call(other, self)


_BINARY = {"add": add, "sub": subtract, "mul": product, "truediv": divide}


def with_operators(kind: type) -> type:
    """Give a class of operands DyNet's operators."""
    for name, call in _BINARY.items():
        setattr(kind, f"__{name}__", call)
        setattr(kind, f"__r{name}__", _reflected(call))
    return kind


def number_of(x: Any) -> Any:
    """An expression of one entry as one without axes."""
    return eb.reshape(x, ()) if x.spec.shape else x


def refuse(what: str) -> DynetError:
    """An error that says in one sentence what cannot be had."""
    return DynetError(what)
