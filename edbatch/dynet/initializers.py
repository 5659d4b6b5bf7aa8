"""Initial values by DyNet's rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edbatch.dynet.checked import number, within
from edbatch.dynet.draws import generator
from edbatch.errors import EdBatchError

Shape = tuple[int, ...]


class PyInitializer:
    """Makes initial values; the base of all initializers.

    Args:
        values: of a shape.
    """

    def __init__(self, values: Callable[[Shape], np.ndarray]) -> None:
        self.values = values


class ConstInitializer(PyInitializer):
    """The same number everywhere."""

    def __init__(self, c: float) -> None:
        c = number("ConstInitializer: c", c)
        super().__init__(lambda shape: np.full(shape, c))


class NormalInitializer(PyInitializer):
    """Gaussian numbers, by mean and variance."""

    def __init__(self, mean: float = 0, var: float = 1) -> None:
        mean, std = number("NormalInitializer: mean", mean), math.sqrt(within("NormalInitializer: var", var, 0))
        super().__init__(lambda shape: generator().normal(mean, std, shape))


class UniformInitializer(PyInitializer):
    """Numbers in [-scale, scale)."""

    def __init__(self, scale: float) -> None:
        scale = within("UniformInitializer: scale", scale, 0)
        super().__init__(lambda shape: generator().uniform(-scale, scale, shape))


class GlorotInitializer(PyInitializer):
    """Uniform in ±gain √(3 n / Σ d) for n axes of sizes d; of a convolution's weights, by the fans."""

    def __init__(self, is_lookup: bool = False, gain: float = 1.0) -> None:
        def values(shape: Shape) -> np.ndarray:
            axes = shape[1:] if is_lookup and len(shape) > 1 else shape
            squared = 3 * len(axes) / sum(axes)
            if len(shape) == 4:
                squared = 6 / (shape[0] * shape[1] * (shape[2] + shape[3]))
            return UniformInitializer(gain * math.sqrt(squared)).values(shape)

        super().__init__(values)


class IdentityInitializer(PyInitializer):
    """The identity, of square matrices."""

    def __init__(self) -> None:
        super().__init__(lambda shape: np.eye(shape[0]))


class NumpyInitializer(PyInitializer):
    """The values of an array."""

    def __init__(self, array: Any) -> None:
        super().__init__(lambda shape: np.asarray(array, np.float64))


class FromFileInitializer(PyInitializer):
    """Numbers in a file, column by column."""

    def __init__(self, fname: str) -> None:
        def values(shape: Shape) -> np.ndarray:
            try:
                return np.array(Path(fname).read_text(encoding="utf-8").split(), np.float64).reshape(shape, order="F")
            except FileNotFoundError as error:
                raise EdBatchError(f"init={fname!r}: expected an initializer's name, or a file's ({error})") from None

        super().__init__(values)


def initial(init: Any, shape: Shape, is_lookup: bool, **given: Any) -> np.ndarray:
    """Initial values by what `add_parameters` is given: None, a number, a name, an array or an initializer.

    Args:
        init: as given.
        shape: of the parameter.
        is_lookup: whether it is a table.
        given: scale, mean, std and gain, which initializers by name may need; None: not given.
    """
    if init is None or isinstance(init, str):
        init = _named(init or "glorot", shape, is_lookup, {k: value for k, value in given.items() if value is not None})
    elif not isinstance(init, PyInitializer):
        init = ConstInitializer(init) if np.ndim(init) == 0 else NumpyInitializer(init)
    values: np.ndarray = init.values(shape)
    if values.shape != shape:
        raise EdBatchError(f"{type(init).__name__}: values of shape {values.shape} for a parameter of shape {shape}")
    return values


def _named(name: str, shape: Shape, is_lookup: bool, given: dict[str, float]) -> PyInitializer:
    """The initializer of a name, or of the numbers in a file of that name."""
    makers: dict[str, Callable[[], PyInitializer]] = {
        "glorot": lambda: GlorotInitializer(is_lookup, given.get("gain", 1.0)),
        "uniform": lambda: UniformInitializer(given.get("scale")),  # type: ignore[arg-type]
        "normal": lambda: NormalInitializer(given.get("mean", 0.0), given.get("std", 1.0) ** 2),
        "he": lambda: NormalInitializer(0.0, 2.0 / shape[0]),
        "identity": IdentityInitializer,
    }
    return makers[name]() if name in makers else FromFileInitializer(name)
