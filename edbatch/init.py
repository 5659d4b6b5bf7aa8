"""Initial values of parameters, as in NumPy, PyTorch and Keras: by name, or as one of these objects.

An initializer is anything that is called with a `numpy.random.Generator` and a shape and returns an array of that
shape: `model.add_parameters((5, 64), init=eb.init.Normal(0.01))`. A model draws all values from the one generator that
its seed begins.

Of a parameter [out, in, ...] the fan-in is in * ..., the fan-out is out * ..., as PyTorch counts them. Deviations,
means, bounds and gains are finite numbers, and no deviation is negative; whatever else is given for one is an
`EdBatchError` where the object is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from edbatch.base.numbers import is_real
from edbatch.errors import EdBatchError, shown
from edbatch.graph.model.exchange import cast, from_dlpack
from edbatch.graph.model.parameters import own_value
from edbatch.graph.spec import Shape

Initializer = Callable[[np.random.Generator, Shape], Any]


class _Checked:
    """What NumPy's generators would make of dates, complex numbers or None are values, and no error."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value: Any = getattr(self, field.name)
            if field.type != "float":
                continue
            if not is_real(value) or isinstance(value, bool | np.bool_):
                raise EdBatchError(f"{type(self).__name__}: {field.name}={shown(value)}; expected a number")
            try:
                found = float(value)
            except OverflowError:
                raise EdBatchError(f"{type(self).__name__}: {field.name}={shown(value)} is too large") from None
            if not isinstance(self, Constant) and not -math.inf < found < math.inf:
                raise EdBatchError(f"{type(self).__name__}: {field.name}={shown(value)}; expected a finite number")
            if field.name == "std" and found < 0:
                raise EdBatchError(f"{type(self).__name__}: std={shown(value)}; expected a number from 0 on")
            object.__setattr__(self, field.name, found)


@dataclass(frozen=True)
class Constant(_Checked):
    """The same number everywhere.

    Example:
        >>> Constant(0.5)(np.random.default_rng(0), (2,))
        array([0.5, 0.5])
    """

    value: float = 0.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        return np.full(shape, self.value, np.float64)


@dataclass(frozen=True)
class Normal(_Checked):
    """Gaussian numbers.

    Args:
        std: their standard deviation.
        mean: their mean.
    """

    std: float = 1.0
    mean: float = 0.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        return rng.normal(self.mean, self.std, shape)


@dataclass(frozen=True)
class Uniform(_Checked):
    """Numbers in [low, high), evenly spread.

    Example:
        >>> bool((Uniform(2, 3)(np.random.default_rng(0), (100,)) >= 2).all())
        True
    """

    low: float = -0.1
    high: float = 0.1

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        return rng.uniform(self.low, self.high, shape)


@dataclass(frozen=True)
class Xavier(_Checked):
    """Xavier or Glorot (Glorot and Bengio 2010): standard deviation gain * √(2 / (fan-in + fan-out)).

    Args:
        distribution: "uniform" or "normal".
        gain: times the standard deviation.

    Example:
        >>> values = Xavier("uniform")(np.random.default_rng(0), (20, 30))
        >>> bool(0.33 < np.abs(values).max() < math.sqrt(6 / 50))
        True
    """

    distribution: Literal["uniform", "normal"] = "uniform"
    gain: float = 1.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        fan_in, fan_out = _fans(shape)
        return _spread(rng, shape, self.distribution, self.gain * math.sqrt(2 / (fan_in + fan_out)))


@dataclass(frozen=True)
class Kaiming(_Checked):
    """Kaiming or He (He et al. 2015): standard deviation gain / √fan.

    Args:
        distribution: "uniform" or "normal".
        fan: "in" keeps the size of values on the way forward, "out" that of gradients on the way back.
        gain: √2 for relu; 1 for what is linear, 5/3 for tanh.

    Example:
        >>> values = Kaiming("normal")(np.random.default_rng(0), (100, 50))
        >>> print(f"{values.std():.2f}")  # √(2 / 50)
        0.20
    """

    distribution: Literal["uniform", "normal"] = "uniform"
    fan: Literal["in", "out"] = "in"
    gain: float = math.sqrt(2)

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        if self.fan not in ("in", "out"):
            raise EdBatchError(f"fan={self.fan!r}; expected 'in' or 'out'")
        fan_in, fan_out = _fans(shape)
        fan = fan_in if self.fan == "in" else fan_out
        return _spread(rng, shape, self.distribution, self.gain / math.sqrt(fan))


@dataclass(frozen=True)
class Orthogonal(_Checked):
    """A random matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al. 2014).

    Of a parameter with more than two axes all but the first count as columns.

    Args:
        gain: times the matrix.

    Example:
        >>> Q = Orthogonal()(np.random.default_rng(0), (2, 3))
        >>> bool(np.allclose(Q @ Q.T, np.eye(2)))
        True
    """

    gain: float = 1.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        _fans(shape)
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
        q *= np.sign(np.diagonal(r))  # else the distribution is not uniform
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


class _Glorot(Xavier):
    """Xavier's of matrices; a vector is a bias, and starts at 0."""

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values."""
        return super().__call__(rng, shape) if len(shape) > 1 else rng.uniform(0, 0, shape)


NAMES: dict[str, Initializer] = {
    "glorot": _Glorot(),
    "zeros": Constant(0.0),
    "ones": Constant(1.0),
    "normal": Normal(),
    "uniform": Uniform(),
    "xavier_uniform": Xavier("uniform"),
    "xavier_normal": Xavier("normal"),
    "glorot_uniform": Xavier("uniform"),
    "glorot_normal": Xavier("normal"),
    "kaiming_uniform": Kaiming("uniform"),
    "kaiming_normal": Kaiming("normal"),
    "he_uniform": Kaiming("uniform"),
    "he_normal": Kaiming("normal"),
    "orthogonal": Orthogonal(),
}


def initial_value(init: Any, rng: np.random.Generator, shape: Shape, dtype: np.dtype, place: str) -> np.ndarray:
    """The array [shape] of a parameter, which copies it.

    Args:
        init: a name, an initializer, a number or an array; see `ParameterCollection.add_parameters`.
        rng: what initializers draw from.
        place: what error messages begin with.

    Raises:
        EdBatchError: the name is unknown, or what is found is not of this shape, or too large for the dtype.

    Example:
        >>> initial_value("ones", np.random.default_rng(0), (2,), np.dtype("float32"), "W")
        array([1., 1.], dtype=float32)
    """
    if isinstance(init, str):
        if init not in NAMES:
            raise EdBatchError(
                f"{place}: unknown init {init!r}; expected {', '.join(NAMES)}, an object of eb.init, a function of a "
                f"generator and a shape, a number or an array"
            )
        init = NAMES[init]
    if callable(init):
        try:
            found = own_value(init(rng, shape))
        except (TypeError, ValueError, OverflowError) as error:
            raise EdBatchError(f"{place}: init: {error}") from error
        array = from_dlpack(found, f"{place}: init")
    else:
        array = from_dlpack(own_value(init), f"{place}: init")
        array = np.broadcast_to(array, shape) if array.shape == () else array
    if array.shape != shape:
        raise EdBatchError(f"{place}: init has shape {array.shape}, expected {shape}")
    return cast(array, dtype, f"{place}: init")


def _fans(shape: Shape) -> tuple[int, int]:
    if len(shape) < 2:
        raise EdBatchError(f"expected at least two axes, got shape {shape}")
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def _spread(rng: np.random.Generator, shape: Shape, distribution: str, std: float) -> np.ndarray:
    if distribution == "normal":
        return rng.normal(0.0, std, shape)
    if distribution == "uniform":
        return rng.uniform(-math.sqrt(3) * std, math.sqrt(3) * std, shape)
    raise EdBatchError(f"distribution={distribution!r}; expected 'uniform' or 'normal'")
