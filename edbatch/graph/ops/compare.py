"""Comparisons, whose values are 0 and 1, and the choice between two values by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import Op, Sample, declare, no_gradient
from edbatch.graph.op_callers import Attributes, binary, recorded
from edbatch.graph.ops.declaring import binary_op, broadcast_shape, two_operands


def _comparison(name: str, sign: str, example: int) -> Callable[[Any, Any], Expression]:
    """Declare one; `example` is its value at (3, 2)."""
    formula = f"1 where a {sign} b, 0 elsewhere, in the dtype of the operands and with no gradient"
    return binary_op(name, formula, no_gradient, f"{example:.4f}", f"1 if x {sign} y else 0", module=__name__)


greater = _comparison("greater", ">", 1)
greater_equal = _comparison("greater_equal", ">=", 1)
less = _comparison("less", "<", 0)
less_equal = _comparison("less_equal", "<=", 0)
equal = _comparison("equal", "==", 0)
not_equal = _comparison("not_equal", "!=", 1)


# Equal, or both NaN: what a maximum that may be NaN is of.
alike = binary(two_operands("alike", no_gradient, "1 if x == y or (x != x and y != y) else 0"))


def _where_gradient(g: Any, out: Any, condition: Any, a: Any, b: Any) -> tuple[None, Expression, Expression]:
    return None, where(condition, g, 0), where(condition, 0, g)


WHERE = declare(
    Op(
        "where",
        broadcast_shape,
        elementwise=True,
        scalar="y if x != 0 else z",
        gradient=_where_gradient,
        samples=tuple(
            Sample(shapes)
            for shapes in (
                ((), (), ()),
                ((4,), (4,), (4,)),
                ((3,), (2, 3), ()),
                ((2, 1), (3,), (2, 3)),
                ((), (4,), (1,)),
            )
        ),
    )
)


@recorded(WHERE, 3)
def where(condition: Any, a: Any, b: Any) -> Attributes:
    """Entries of `a` where `condition` is not zero, of `b` elsewhere; shapes broadcast per sample like NumPy's.

    The gradient goes to what was chosen: that of the other is exactly zero there, be its value infinite or NaN. None
    goes to the condition.

    Args:
        condition: an expression, as a comparison's, or an array; NaN is not zero.
        a, b: expressions, parameters, numbers or arrays.

    Returns:
        Expression of the broadcast shape, and of the dtype of all three.

    Raises:
        EdBatchError: the shapes do not broadcast, or the operands belong to different graphs.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     x = eb.input([2.0, -1.0, 0.5])
        ...     y = eb.where(x > 1, x, -x)
        >>> y.value()
        array([ 2. ,  1. , -0.5], dtype=float32)
    """
    return {}


for _class in (Expression, Parameter):
    for _name, _call in {"gt": greater, "ge": greater_equal, "lt": less, "le": less_equal}.items():
        setattr(_class, f"__{_name}__", _call)
