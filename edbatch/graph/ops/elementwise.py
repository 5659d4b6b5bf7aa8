"""Element-wise functions, arithmetic, comparisons and choices: operands broadcast per sample like NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import Op, expect, no_gradient
from edbatch.graph.op_callers import Attributes, binary, recorded
from edbatch.graph.ops.declaring import TWO, binary_op, elementwise_op, numbers, unary_op

# Where no gradient flows, it is chosen to be 0: an infinite one times 0 would be NaN.


def _comparison(name: str, sign: str, example: int) -> Callable[[Any, Any], Expression]:
    """Declare one; `example` is its value at (3, 2)."""
    formula = f"1 where a {sign} b, 0 elsewhere, in the dtype of the operands and with no gradient"
    return binary_op(name, formula, no_gradient, f"{example}.0", f"1 if x {sign} y else 0")


greater = _comparison("greater", ">", 1)
greater_equal = _comparison("greater_equal", ">=", 1)
less = _comparison("less", "<", 0)
less_equal = _comparison("less_equal", "<=", 0)
equal = _comparison("equal", "==", 0)
not_equal = _comparison("not_equal", "!=", 1)
# Equal, or both NaN: what a maximum that may be NaN is of.
alike = binary(elementwise_op("alike", "1 if x == y or (x != x and y != y) else 0", no_gradient, shapes=TWO))


WHERE: Op = elementwise_op(
    "where",
    "y if x != 0 else z",
    lambda g, out, condition, a, b: (None, where(condition, g, 0), where(condition, 0, g)),  # type: ignore[has-type]
    shapes=[((), (), ()), ((4,), (4,), (4,)), ((3,), (2, 3), ()), ((2, 1), (3,), (2, 3)), ((), (4,), (1,))],
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

    Example: eb.where(eb.input([2.0, -1.0]) > 1, 5, eb.input([3.0, 4.0])) -> [5. 4.]
    """
    return {}


def _of_the_chosen(g: Any, out: Any, a: Any, b: Any) -> tuple[Expression, Expression]:
    """The gradient goes to the operand that is the result, half of it to each where both are; NaN is NaN's."""
    to_a, to_b = alike(a, out), alike(b, out)
    part = g / (to_a + to_b)
    return where(to_a, part, 0), where(to_b, part, 0)


def _gelu_slope(x: Any) -> Expression:
    return 0.5 * erfc(x * -(0.5**0.5)) + x * exp(-0.5 * square(x)) * (2 * math.pi) ** -0.5


def _silu_slope(x: Any) -> Expression:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def _power_gradient(g: Any, out: Any, a: Any, b: Any) -> tuple[Expression, Expression]:
    # As PyTorch's: a ** 0 is the constant 1, and so is 0 ** b the constant 0 unless b is negative.
    constant = equal(a, 0) * greater_equal(b, 0)
    return where(b, g * b * power(a, b - 1), 0), where(constant, 0, g * out * log(a))


def is_zero(x: Expression) -> Expression:
    """1 where a number that is not negative is zero, 0 elsewhere: added to a divisor."""
    return 1 - greater(x, 0)


# fmt: off
neg = unary_op("neg", "-x", lambda g, out, x: -g, "-0.5", "-x")
abs = unary_op("abs", "|x|", lambda g, out, x: g * (greater(x, 0) - greater(0, x)), "0.5", "abs(x)")
square = unary_op("square", "x²", lambda g, out, x: 2 * x * g, "0.25", "x * x")
sqrt = unary_op("sqrt", "√x", lambda g, out, x: 0.5 * g / out, "0.7071...", "sqrt(x)", low=0.1, high=3)
exp = unary_op("exp", "eˣ", lambda g, out, x: g * out, "1.6487...", "exp(x)")
log = unary_op("log", "Natural logarithm", lambda g, out, x: g / x, "-0.6931...", "log(x)", low=0.1, high=3)
tanh = unary_op("tanh", "Hyperbolic tangent", lambda g, out, x: g * (1 - out * out), "0.4621...", "tanh(x)")
sigmoid = unary_op("sigmoid", "1 / (1 + e⁻ˣ)", lambda g, out, x: g * out * (1 - out), "0.6224...", "sigmoid(x)")
relu = unary_op("relu", "max(x, 0)", lambda g, out, x: where(less_equal(x, 0), 0, g), "0.5", "maximum(x, 0)")
gelu = unary_op("gelu", "x Φ(x), Φ the normal distribution function (exact, by erf)",
              lambda g, out, x: g * _gelu_slope(x), "0.3457...", "0.5 * x * erfc(x * -0.7071067811865476)")
silu = unary_op("silu", "x / (1 + e⁻ˣ), also called swish",
              lambda g, out, x: g * _silu_slope(x), "0.3112...", "x * sigmoid(x)")
softplus = unary_op("softplus", "log(1 + eˣ), without overflow",
                  lambda g, out, x: g * sigmoid(x), "0.9740...", "maximum(x, 0) + log1p(exp(-abs(x)))")
softsign = unary_op("softsign", "x / (1 + |x|)",
                  lambda g, out, x: g / square(1 + abs(x)), "0.3333...", "x / (1 + abs(x))")
log_sigmoid = unary_op("log_sigmoid", "log(1 / (1 + e⁻ˣ)), without overflow",
                     lambda g, out, x: g * sigmoid(-x), "-0.4740...", "minimum(x, 0) - log1p(exp(-abs(x)))")
erf = unary_op("erf", "Error function",
             lambda g, out, x: g * exp(-square(x)) * (2 * math.pi**-0.5), "0.5204...", "erf(x)")
erfc: Callable[[Any], Expression] = unary_op("erfc", "1 - erf(x), without cancellation",
             lambda g, out, x: g * exp(-square(x)) * (-2 * math.pi**-0.5), "0.4795...", "erfc(x)")
sin = unary_op("sin", "Sine of x in radians", lambda g, out, x: g * cos(x), "0.4794...", "sin(x)")
cos: Callable[[Any], Expression] = unary_op("cos", "Cosine of x in radians",
             lambda g, out, x: -g * sin(x), "0.8775...", "cos(x)")

add = binary_op("add", "a + b", lambda g, out, a, b: (g, g), "5.0", "x + y")
subtract = binary_op("subtract", "a - b", lambda g, out, a, b: (g, -g), "1.0", "x - y")
multiply = binary_op("multiply", "a · b", lambda g, out, a, b: (g * b, g * a), "6.0", "x * y")
divide = binary_op("divide", "a / b", lambda g, out, a, b: (g / b, -g * out / b), "1.5", "x / y", low=0.5)
minimum2 = binary_op("minimum", "Smaller of a and b", _of_the_chosen, "2.0", "minimum(x, y)", chooses=True)
maximum2 = binary_op("maximum", "Larger of a and b", _of_the_chosen, "3.0", "maximum(x, y)", chooses=True)
# fmt: on
_power_call = binary(elementwise_op("power", "power(x, y)", _power_gradient, shapes=TWO, low=0.1))


@recorded(
    elementwise_op(
        "leaky_relu",
        "x if x > 0 else slope * x",
        lambda g, out, x, slope: where(greater(x, 0), g, g * slope),
        {"slope": 0.01},
        {"slope": 0.3},
    )
)
def leaky_relu(x: Any, slope: float = 0.01) -> Attributes:
    """x where it is positive, slope · x elsewhere; different slopes run in different batches.

    Example: eb.leaky_relu(eb.input([2.0, -2.0]), slope=0.5) -> [ 2. -1.]
    """
    return numbers("leaky_relu", x, slope=slope)


@recorded(
    elementwise_op(
        "elu",
        "x if x > 0 else alpha * expm1(minimum(x, 0))",
        lambda g, out, x, alpha: where(less_equal(x, 0), g * alpha * exp(minimum2(x, 0)), g),
        {"alpha": 1.0},
        {"alpha": 0.3},
    )
)
def elu(x: Any, alpha: float = 1.0) -> Attributes:
    """x where it is positive, alpha · (eˣ - 1) elsewhere; different alphas run in different batches.

    Example: eb.elu(eb.input([2.0, 0.0]), alpha=0.5) -> [2. 0.]
    """
    return numbers("elu", x, alpha=alpha)


@recorded(
    elementwise_op(
        "clip",
        "minimum(maximum(x, low), high)",
        lambda g, out, x, low, high: where(greater_equal(x, low) * less_equal(x, high), g, 0),
        {"low": -0.5, "high": 0.7},
    )
)
def clip(x: Any, low: float | None = None, high: float | None = None) -> Attributes:
    """Entries of x limited to [low, high]; the gradient at a limit is 1, as in PyTorch.

    Args:
        x: expression of any shape.
        low, high: numbers, part of the type; None, of one of them: no limit on this side.

    Raises:
        EdBatchError: low is greater than high, or both are None.

    Example: eb.clip(eb.input([2.0, 0.5, -2.0]), 0, 1) -> [1. 0.5 0. ]
    """
    expect(low is not None or high is not None, "clip: expected a limit, got neither low nor high")
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    found = {name: limit + 0.0 for name, limit in numbers("clip", x, low=low, high=high).items()}  # -0.0 is the same
    expect(found["low"] <= found["high"], f"clip: expected low <= high, got {found['low']} and {found['high']}")
    return found


def power(a: Any, b: Any) -> Expression:
    """a ** b; a number as exponent is part of the type.

    Example: (eb.input([1.0, 2.0, 3.0]) ** 2) -> [1. 4. 9.]
    """
    if not isinstance(b, int | float):
        return _power_call(a, b)
    if b == 2:
        return square(a)
    if b == 0.5:
        return sqrt(a)
    return divide(1, a) if b == -1 else _power_of(a, b)


# An exponent that is a plain number is part of the type: NumPy's power with an array of exponents is slow.
@recorded(
    elementwise_op(
        "power_of",
        "power(x, exponent)",
        lambda g, out, x, exponent: None if exponent == 0 else g * exponent * power(x, exponent - 1),
        {"exponent": 3.0},
    )
)
def _power_of(x: Any, exponent: float) -> Attributes:
    return numbers("power_of", x, exponent=exponent)


@recorded(
    elementwise_op(
        "scale_gradient",
        "x",
        lambda g, out, x, scale: g * scale,
        {"scale": -0.5},
    )
)
def scale_gradient(x: Any, scale: float) -> Attributes:
    """The same value; gradients that flow back through it are multiplied by `scale` (negative: reversed).

    Example: eb.scale_gradient(eb.scalar(2), 0.1) -> 2.0
    """
    return numbers("scale_gradient", x, scale=scale)


def _reflected(call: Callable) -> Callable:
    return lambda self, other: call(other, self)


_BINARY = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "pow": power}
_OPERATORS: dict[str, Callable] = {
    **_BINARY, **{f"r{name}": _reflected(call) for name, call in _BINARY.items()},
    "gt": greater, "ge": greater_equal, "lt": less, "le": less_equal, "neg": neg, "abs": abs,
}  # fmt: skip
for _class in (Expression, Parameter):
    for _name, _call in _OPERATORS.items():
        setattr(_class, f"__{_name}__", _call)
