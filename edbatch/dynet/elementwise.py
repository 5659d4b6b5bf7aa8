"""Functions of each entry by itself, as a table: those of equal meaning, renamed ones, and those of a few lines."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.dynet import functions
from edbatch.dynet.arithmetic import add, divide, multiply, number_of
from edbatch.errors import EdBatchError

# Of equal meaning, and renamed.
tanh, exp, log, sqrt, square, abs = eb.tanh, eb.exp, eb.log, eb.sqrt, eb.square, eb.abs
sin, cos, erf, softsign, log_sigmoid = eb.sin, eb.cos, eb.erf, eb.softsign, eb.log_sigmoid
logistic, rectify = eb.sigmoid, eb.relu
nobackprop = eb.stop_gradient
bmax, bmin = eb.maximum, eb.minimum
cmult, cdiv = multiply, divide
asin, acos, atan = functions.asin, functions.acos, functions.atan
asinh, acosh, atanh, lgamma = functions.asinh, functions.acosh, functions.atanh, functions.lgamma


def cube(x: Any) -> Any:
    """x³."""
    return eb.power(x, 3)


def tan(x: Any) -> Any:
    """Tangent."""
    return eb.divide(eb.sin(x), eb.cos(x))


def sinh(x: Any) -> Any:
    """Hyperbolic sine."""
    return eb.multiply(eb.subtract(eb.exp(x), eb.exp(eb.neg(x))), 0.5)


def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""
    return eb.multiply(eb.add(eb.exp(x), eb.exp(eb.neg(x))), 0.5)


def _stepped(x: Any, value: Any, gradient_mode: str) -> Any:
    """A step function's value; in the second mode with the gradient of x."""
    if gradient_mode == "zero_gradient":
        return value
    if gradient_mode != "straight_through_gradient":
        raise EdBatchError(f"gradient_mode={gradient_mode!r}: expected zero_gradient or straight_through_gradient")
    return eb.add(value, eb.subtract(x, eb.stop_gradient(x)))


def round(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The nearest integers, halves away from 0; `gradient_mode`: zero_gradient or straight_through_gradient."""
    return _stepped(x, functions.round(x), gradient_mode)


def ceil(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The next integers above; `gradient_mode` as of `round`."""
    return _stepped(x, functions.ceil(x), gradient_mode)


def floor(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The next integers below; `gradient_mode` as of `round`."""
    return _stepped(x, functions.floor(x), gradient_mode)


def argmax(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """A vector of zeros with a one where x is largest; `gradient_mode` as of `round`."""
    if len(x.spec.shape) > 1:
        raise EdBatchError(f"Argmax only supports vectors for now, got dimension {x.spec.shape}")
    x = eb.reshape(x, (1,)) if not x.spec.shape else x
    return _stepped(x, eb.one_hot(eb.argmax(x, 0), x.spec.size), gradient_mode)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, alpha (eˣ - 1) elsewhere."""
    return eb.elu(x, float(alpha))


def selu(x: Any) -> Any:
    """Self-normalising `elu`."""
    return eb.multiply(eb.elu(x, 1.6732632423543772), 1.0507009873554805)


def silu(x: Any, beta: float = 1.0) -> Any:
    """x sigmoid(beta x)."""
    return eb.silu(x) if beta == 1.0 else eb.multiply(x, eb.sigmoid(eb.multiply(x, float(beta))))


def pow(x: Any, y: Any) -> Any:
    """x to the power of a number, which may be an expression."""
    return eb.power(x, number_of(y) if hasattr(y, "spec") else y)


def flip_gradient(x: Any) -> Any:
    """x, whose gradient is reversed."""
    return eb.scale_gradient(x, -1.0)


def scale_gradient(x: Any, lambd: float = 1.0) -> Any:
    """x, whose gradient is multiplied by a number."""
    return eb.scale_gradient(x, float(lambd))


def colwise_add(x: Any, y: Any) -> Any:
    """A vector added to every column of a matrix."""
    return add(x, y)
