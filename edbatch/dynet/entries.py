"""Functions of each entry by itself: EdBatch's own, renamed or not, some of a line, and some that it does not have.

Inverse tangents begin with a polynomial (Abramowitz and Stegun, 4.4.49) and end with one step of Newton's method, which
makes them exact to rounding. The gamma function's logarithm and its derivative are Stirling's series, of six more than
the argument where that is small, and Euler's reflection left of one half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.dynet import arithmetic
from edbatch.dynet.checked import named
from edbatch.errors import EdBatchError
from edbatch.graph.op import Op, no_gradient
from edbatch.graph.op_callers import unary

_ATAN = """
size = abs(x)
near = 1 / size if size > 1 else size
squared = near * near
guess = near * (0.999866 + squared * (-0.3302995 + squared * (0.180141 + squared * (-0.085133 + squared * 0.0208351))))
step = (near * cos(guess) - sin(guess)) / (cos(guess) + near * sin(guess))
angle = 1.5707963267948966 - (guess + step) if size > 1 else guess + step
angle if x >= 0 else -angle
"""
_RIGHT = """
right = x if x >= 0.5 else 1 - x
far = right if right > 6 else right + 6
inverted = 1 / far
squared = inverted * inverted
"""


def _op(name: str, text: str, gradient: Callable[..., Any]) -> Callable[[Any], Any]:
    return unary(Op(f"dynet_{name}", lambda shape: shape, elementwise=True, scalar=text.strip(), gradient=gradient))


_atan = _op("atan", _ATAN, lambda g, out, x: g / (1 + eb.square(x)))
_asinh = _op(
    "asinh",
    """
size = abs(x)
near = log1p(size + size * size / (1 + sqrt(size * size + 1)))
value = near if size < 1000000000 else log(size) + 0.6931471805599453
value if x >= 0 else -value
""",
    lambda g, out, x: g / eb.sqrt(eb.square(x) + 1),
)
_acosh = _op(
    "acosh",
    "more = x - 1\nlog1p(more + sqrt(more) * sqrt(more + 2))",
    lambda g, out, x: g / (eb.sqrt(x - 1) * eb.sqrt(x + 1)),
)
_atanh = _op(
    "atanh",
    "size = abs(x)\nvalue = 0.5 * log1p(2 * size / (1 - size))\nvalue if x >= 0 else -value",
    lambda g, out, x: g / ((1 - x) * (1 + x)),
)

_LGAMMA = f"""{_RIGHT}
factors = right * (right + 1) * (right + 2) * (right + 3) * (right + 4) * (right + 5)
tail = inverted * (0.08333333333333333 - squared * (0.002777777777777778 - squared * 0.0007936507936507937))
series = (far - 0.5) * (log(far) - 1) + {0.5 * math.log(2 * math.pi) - 0.5} + tail
value = series if right > 6 else series - log(factors)
value if x >= 0.5 else {math.log(math.pi)} - log(abs(sin({math.pi} * (x - floor(x))))) - value
"""
_DIGAMMA = f"""{_RIGHT}
first = 1 / right + 1 / (right + 1) + 1 / (right + 2)
steps = first + 1 / (right + 3) + 1 / (right + 4) + 1 / (right + 5)
tail = squared * (0.08333333333333333 - squared * (0.008333333333333333 - squared * 0.003968253968253968))
series = log(far) - 0.5 * inverted - tail
value = series if right > 6 else series - steps
value if x >= 0.5 else value - {math.pi} * cos({math.pi} * (x - floor(x))) / sin({math.pi} * (x - floor(x)))
"""
_digamma = _op("digamma", _DIGAMMA, no_gradient)
_lgamma = _op("lgamma", _LGAMMA, lambda g, out, x: g * _digamma(x))


def _argmax(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    if len(x.spec.shape) > 1:
        raise EdBatchError(f"Argmax only supports vectors for now, got dimension {x.spec.shape}")
    found = eb.one_hot(eb.argmax(arithmetic.with_axes(x, 1), 0), x.spec.size)
    return found if gradient_mode == "zero_gradient" else eb.add(found, eb.subtract(x, eb.stop_gradient(x)))


#: By DyNet's name.
TABLE = {
    "tanh": eb.tanh, "exp": eb.exp, "log": eb.log, "sqrt": eb.sqrt, "square": eb.square, "abs": eb.abs, "sin": eb.sin,
    "cos": eb.cos, "erf": eb.erf, "softsign": eb.softsign, "log_sigmoid": eb.log_sigmoid,
    "logistic": eb.sigmoid, "rectify": eb.relu, "nobackprop": eb.stop_gradient, "bmax": eb.maximum, "bmin": eb.minimum,
    "cmult": arithmetic.multiply, "cdiv": arithmetic.divide, "pow": arithmetic.power,
    "atan": _atan, "asinh": _asinh, "acosh": _acosh, "atanh": _atanh, "lgamma": _lgamma,
    **named(
        asin=(lambda x: _atan(eb.divide(x, eb.sqrt(eb.multiply(1 - x, 1 + x)))), "Inverse sine."),
        acos=(lambda x: eb.multiply(_atan(eb.sqrt((1 - x) / (1 + x))), 2.0), "Inverse cosine."),
        cube=(lambda x: eb.power(x, 3), "x³."),
        tan=(lambda x: eb.divide(eb.sin(x), eb.cos(x)), "Tangent."),
        sinh=(lambda x: eb.multiply(eb.subtract(eb.exp(x), eb.exp(eb.neg(x))), 0.5), "Hyperbolic sine."),
        cosh=(lambda x: eb.multiply(eb.add(eb.exp(x), eb.exp(eb.neg(x))), 0.5), "Hyperbolic cosine."),
        argmax=(
            _argmax, "A one where x is largest, else 0; `gradient_mode`: zero_gradient or straight_through_gradient."
        ),
        elu=(lambda x, alpha=1.0: eb.elu(x, float(alpha)), "x where it is positive, alpha (eˣ - 1) elsewhere."),
        selu=(lambda x: eb.multiply(eb.elu(x, 1.6732632423543772), 1.0507009873554805), "Self-normalising `elu`."),
        silu=(lambda x, beta=1.0: eb.multiply(x, eb.sigmoid(eb.multiply(x, float(beta)))), "x sigmoid(beta x)."),
        flip_gradient=(lambda x: eb.scale_gradient(x, -1.0), "x, whose gradient is reversed."),
        scale_gradient=(lambda x, lambd=1.0: eb.scale_gradient(x, float(lambd)), "x, its gradient times a number."),
        colwise_add=(lambda x, y: arithmetic.add(x, y), "A vector added to every column of a matrix."),
    ),
}  # fmt: skip
