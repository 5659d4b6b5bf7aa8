"""Functions of each entry by itself, as a table: those of equal meaning, renamed ones, and those of a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

import edbatch as eb
from edbatch.dynet.arithmetic import add, divide, multiply, number_of
from edbatch.dynet.numeric import computed
from edbatch.errors import EdBatchError

# Of equal meaning, and renamed.
tanh, exp, log, sqrt, square, abs = eb.tanh, eb.exp, eb.log, eb.sqrt, eb.square, eb.abs
sin, cos, erf, softsign, log_sigmoid = eb.sin, eb.cos, eb.erf, eb.softsign, eb.log_sigmoid
logistic, rectify = eb.sigmoid, eb.relu
nobackprop = eb.stop_gradient
bmax, bmin = eb.maximum, eb.minimum
cmult, cdiv = multiply, divide


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


def asinh(x: Any) -> Any:
    """Inverse of the hyperbolic sine."""
    return computed(x, np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1))


def acosh(x: Any) -> Any:
    """Inverse of the hyperbolic cosine."""
    return computed(x, np.arccosh, lambda x: 1 / np.sqrt(x * x - 1))


def atanh(x: Any) -> Any:
    """Inverse of the hyperbolic tangent."""
    return computed(x, np.arctanh, lambda x: 1 / (1 - x * x))


def asin(x: Any) -> Any:
    """Inverse of the sine."""
    return computed(x, np.arcsin, lambda x: 1 / np.sqrt(1 - x * x))


def acos(x: Any) -> Any:
    """Inverse of the cosine."""
    return computed(x, np.arccos, lambda x: -1 / np.sqrt(1 - x * x))


def atan(x: Any) -> Any:
    """Inverse of the tangent."""
    return computed(x, np.arctan, lambda x: 1 / (1 + x * x))


def lgamma(x: Any) -> Any:
    """Logarithm of the gamma function."""
    return computed(x, special.gammaln, special.digamma)


def _modes(gradient_mode: str) -> Any:
    """The derivative that a step function is given."""
    if gradient_mode == "zero_gradient":
        return np.zeros_like
    if gradient_mode == "straight_through_gradient":
        return np.ones_like
    raise EdBatchError(f"gradient_mode={gradient_mode!r}: expected zero_gradient or straight_through_gradient")


def round(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The nearest integers, halves away from 0; `gradient_mode`: zero_gradient or straight_through_gradient."""
    return computed(x, lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), _modes(gradient_mode))


def ceil(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The next integers above; `gradient_mode` as of `round`."""
    return computed(x, np.ceil, _modes(gradient_mode))


def floor(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """The next integers below; `gradient_mode` as of `round`."""
    return computed(x, np.floor, _modes(gradient_mode))


def argmax(x: Any, gradient_mode: str = "zero_gradient") -> Any:
    """A vector of zeros with a one where x is largest; `gradient_mode` as of `round`."""
    if len(x.spec.shape) > 1:
        raise EdBatchError(f"Argmax only supports vectors for now, got dimension {x.spec.shape}")
    return computed(x, lambda x: np.eye(x.shape[-1])[np.argmax(x, -1)], _modes(gradient_mode))


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
