"""Collections of parameters, whose names are paths, and initial values by DyNet's rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import number, sizes, within
from edbatch.dynet.files import find_one, populate_collection, save_collection
from edbatch.dynet.implicit import implicit
from edbatch.dynet.inputs import generator
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.errors import EdBatchError

Shape = tuple[int, ...]
Kind = TypeVar("Kind", Parameters, LookupParameters)
#: What `--dynet-weight-decay` sets.
default_decay = {"lam": 0.0}


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


class ParameterCollection:
    """The parameters of a model; `Model` is another name of it.

    Example:
        >>> from edbatch import dynet as dy
        >>> model = dy.ParameterCollection()
        >>> W, part = model.add_parameters((2, 3)), model.add_subcollection("part")
        >>> b = part.add_parameters(2, name="b", init=0.0)
        >>> [x.name() for x in model.parameters_list()]
        ['/_0', '/part/b']
        >>> dy.close_cg()
    """

    save, populate = save_collection, populate_collection

    def __init__(self) -> None:
        implicit.opened()  # expressions of parameters alone have to be of some graph
        self._prefix = "/"
        self._collections = [self]  # and those that this is a part of
        self._all: list[eb.Parameter] = []
        self._taken: tuple[dict[str, int], dict[str, int]] = {}, {}  # names of parameters, and of parts
        self._decay = dict(default_decay)

    def name(self) -> str:
        """The path that begins the names of its parameters."""
        return self._prefix

    def add_subcollection(self, name: str = "") -> ParameterCollection:
        """A part of this collection, with a path of its own."""
        part = ParameterCollection()
        part._prefix = f"{self._prefix}{_free(self._taken[1], name)}/"
        part._collections += self._collections
        part._decay = self._decay
        return part

    def add_parameters(self, dim: Any, init: Any = None, name: str = "", device: str = "", **given: Any) -> Parameters:
        """Add an array; `init` is a number, an array, an initializer, or one's name, with its numbers `given`."""
        return self._add(Parameters, name, initial(init, sizes("dim", dim), False, **given))

    def add_lookup_parameters(
        self, dim: Any, init: Any = None, name: str = "", device: str = "", **given: Any
    ) -> LookupParameters:
        """Add a table; `dim` begins with the number of its rows."""
        return self._add(LookupParameters, name, initial(init, sizes("dim", dim), True, **given))

    def parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> Parameters:
        """Add an array with these values."""
        return self._add(Parameters, name, array)

    def lookup_parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> LookupParameters:
        """Add a table with these values."""
        return self._add(LookupParameters, name, array)

    def load_param(self, fname: str, name: str) -> Parameters:
        """Add the parameter of a file that has this name there."""
        return self._add(Parameters, "", find_one(fname, name, is_table=False))

    def load_lookup_param(self, fname: str, name: str) -> LookupParameters:
        """Add the table of a file that has this name there."""
        return self._add(LookupParameters, "", find_one(fname, name, is_table=True))

    def parameters_list(self) -> list[Parameters]:
        """All parameters but tables, of parts too."""
        return [x for x in self._all if isinstance(x, Parameters)]

    def lookup_parameters_list(self) -> list[LookupParameters]:
        """All tables, of parts too."""
        return [x for x in self._all if isinstance(x, LookupParameters)]

    def __iter__(self) -> Iterator[eb.Parameter]:
        return iter(self._all)

    def set_weight_decay_lambda(self, lam: float) -> None:
        """After each update, every parameter is multiplied by 1 - `lam`."""
        self._decay["lam"] = within("set_weight_decay_lambda: lam", lam, 0, 1)

    set_weight_decay = set_weight_decay_lambda

    def get_weight_decay(self) -> float:
        """What `set_weight_decay_lambda` set."""
        return self._decay["lam"]

    def reset_gradient(self) -> None:
        """Forget all gradients."""
        for parameter in self._all:
            parameter.zero_grad()

    def _add(self, kind: Callable[[str, np.ndarray], Kind], name: str, values: Any) -> Kind:
        made = kind(f"{self._prefix}{_free(self._taken[0], name)}", np.asarray(values, np.float32))
        for collection in self._collections:
            collection._all.append(made)
        return made


Model = ParameterCollection


def _free(taken: dict[str, int], name: str) -> str:
    """A name that is not taken: `_0`, `_1`, ... without one, `W`, `W_1`, ... with."""
    if not isinstance(name, str) or "/" in name:
        raise EdBatchError(f"name {name!r}: expected one without '/'")
    number = taken.get(name, 0)
    taken[name] = number + 1
    return f"{name}_{number}" if number or not name else name
