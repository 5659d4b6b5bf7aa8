"""Initial values by DyNet's rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edbatch.dynet.checked import number, positive
from edbatch.dynet.draws import generator
from edbatch.errors import EdBatchError


class PyInitializer:
    """Makes initial values; the base of all initializers."""

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape; of tables, of a row's."""
        raise NotImplementedError


class ConstInitializer(PyInitializer):
    """The same number everywhere."""

    def __init__(self, c: float) -> None:
        self.c = number("ConstInitializer: c", c)

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        return np.full(shape, self.c)


class NormalInitializer(PyInitializer):
    """Gaussian numbers, by mean and variance."""

    def __init__(self, mean: float = 0, var: float = 1) -> None:
        self.mean, self.std = (
            number("NormalInitializer: mean", mean),
            math.sqrt(positive("NormalInitializer: var", var)),
        )

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        return generator().normal(self.mean, self.std, shape)


class UniformInitializer(PyInitializer):
    """Numbers in [-scale, scale)."""

    def __init__(self, scale: float) -> None:
        self.scale = positive("UniformInitializer: scale", scale)

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        return generator().uniform(-self.scale, self.scale, shape)


class GlorotInitializer(PyInitializer):
    """Uniform in ±gain √(3 n / Σ d) for n axes of sizes d; of a convolution's weights, by the fans."""

    def __init__(self, is_lookup: bool = False, gain: float = 1.0) -> None:
        self.is_lookup, self.gain = is_lookup, gain

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        if len(shape) == 4:
            scale = self.gain * math.sqrt(6 / (shape[0] * shape[1] * (shape[2] + shape[3])))
        else:
            axes = shape[1:] if self.is_lookup and len(shape) > 1 else shape
            scale = self.gain * math.sqrt(3 * len(axes)) / math.sqrt(sum(axes))
        return generator().uniform(-scale, scale, shape)


class SaxeInitializer(PyInitializer):
    """A random matrix with orthonormal rows."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        if len(shape) != 2:
            raise EdBatchError(f"SaxeInitializer: expected a matrix, got shape {shape}")
        u, _, v = np.linalg.svd(generator().normal(size=shape), full_matrices=False)
        return self.scale * (u if u.shape == shape else v)


class IdentityInitializer(PyInitializer):
    """The identity, of square matrices."""

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        if len(shape) != 2 or shape[0] != shape[1]:
            raise EdBatchError(f"IdentityInitializer: expected a square matrix, got shape {shape}")
        return np.eye(shape[0])


class NumpyInitializer(PyInitializer):
    """The values of an array."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array, np.float64)

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        if self.array.shape != shape:
            raise EdBatchError(f"NumpyInitializer: an array of shape {self.array.shape} for a parameter of {shape}")
        return self.array


class FromFileInitializer(PyInitializer):
    """Numbers in a file, column by column."""

    def __init__(self, fname: str) -> None:
        self.fname = fname

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of a shape."""
        with open(self.fname, encoding="utf-8") as file:
            return np.array(file.read().split(), np.float64).reshape(shape, order="F")


def initial(init: Any, shape: tuple[int, ...], is_lookup: bool, **given: Any) -> np.ndarray:
    """Initial values by what `add_parameters` is given: None, a number, a name, an array or an initializer."""
    if isinstance(init, PyInitializer):
        maker = init
    elif init is None or (isinstance(init, str) and init == "glorot"):
        maker = GlorotInitializer(is_lookup, given.get("gain") or 1.0)
    elif isinstance(init, str):
        return _named(init, shape, given)
    elif np.ndim(init) == 0:
        maker = ConstInitializer(float(init))
    else:
        maker = NumpyInitializer(init)
    return maker.values(shape)


def _named(init: str, shape: tuple[int, ...], given: dict[str, Any]) -> np.ndarray:
    if init == "uniform":
        if given.get("scale") is None:
            raise EdBatchError("init='uniform': expected a scale")
        return UniformInitializer(given["scale"]).values(shape)
    if init == "normal":
        mean, std = given.get("mean"), given.get("std")
        return NormalInitializer(mean or 0.0, (1.0 if std is None else std) ** 2).values(shape)
    if init == "he":
        return NormalInitializer(0.0, 2.0 / shape[0]).values(shape)
    if init == "saxe":
        return SaxeInitializer(given.get("scale") or 1.0).values(shape)
    if init == "identity":
        return IdentityInitializer().values(shape)
    try:
        return FromFileInitializer(init).values(shape)
    except FileNotFoundError as error:
        raise EdBatchError(f"init={init!r}: expected the name of an initializer, or of a file ({error})") from None
