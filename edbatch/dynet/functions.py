"""Functions of each entry that EdBatch's own do not have, as ops: the text of one entry, and the gradient.

Inverse tangents begin with a polynomial (Abramowitz and Stegun, 4.4.49) and end with one step of Newton's method, which
makes them exact to rounding. The gamma function's logarithm and its derivative are Stirling's series, of six more than
the argument where that is small, and Euler's reflection left of one half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.graph.fast import unary
from edbatch.graph.op import Op, no_gradient

Function = Callable[[Any], Any]

_ATAN = """
size = abs({0})
near = 1 / size if size > 1 else size
squared = near * near
guess = near * (0.999866 + squared * (-0.3302995 + squared * (0.180141 + squared * (-0.085133 + squared * 0.0208351))))
step = (near * cos(guess) - sin(guess)) / (cos(guess) + near * sin(guess))
angle = 1.5707963267948966 - (guess + step) if size > 1 else guess + step
"""
_RIGHT = """
right = x if x >= 0.5 else 1 - x
far = right if right > 6 else right + 6
inverted = 1 / far
squared = inverted * inverted
"""


def _op(name: str, text: str, gradient: Callable[..., Any]) -> Function:
    return unary(Op(f"dynet_{name}", lambda shape: shape, elementwise=True, scalar=text.strip(), gradient=gradient))


def _root(x: Any) -> Any:
    return eb.sqrt((1 - x) * (1 + x))


atan = _op("atan", _ATAN.format("x") + "angle if x >= 0 else -angle", lambda g, out, x: g / (1 + eb.square(x)))
asin = _op(
    "asin",
    "half = x / (1 + sqrt((1 - x) * (1 + x)))" + _ATAN.format("half") + "2 * angle if x >= 0 else -2 * angle",
    lambda g, out, x: g / _root(x),
)
acos = _op(
    "acos",
    "half = sqrt((1 - x) / (1 + x))" + _ATAN.format("half") + "2 * angle",
    lambda g, out, x: -g / _root(x),
)
asinh = _op(
    "asinh",
    """
size = abs(x)
near = log1p(size + size * size / (1 + sqrt(size * size + 1)))
value = near if size < 1000000000 else log(size) + 0.6931471805599453
value if x >= 0 else -value
""",
    lambda g, out, x: g / eb.sqrt(eb.square(x) + 1),
)
acosh = _op(
    "acosh",
    "more = x - 1\nlog1p(more + sqrt(more) * sqrt(more + 2))",
    lambda g, out, x: g / (eb.sqrt(x - 1) * eb.sqrt(x + 1)),
)
atanh = _op(
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
lgamma = _op("lgamma", _LGAMMA, lambda g, out, x: g * _digamma(x))

floor = _op("floor", "floor(x)", no_gradient)
ceil = _op("ceil", "-floor(-x)", no_gradient)
#: Halves away from 0.
round = _op(
    "round",
    """
size = abs(x)
below = floor(size)
value = below + 1 if size - below >= 0.5 else below
value if x >= 0 else -value
""",
    no_gradient,
)
