"""Collections of parameters, whose names are paths, and initial values by DyNet's rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import named, sizes
from edbatch.dynet.files import find_one, populate_collection, save_collection
from edbatch.dynet.implicit import implicit
from edbatch.dynet.inputs import generator
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.errors import EdBatchError

Shape = tuple[int, ...]
Initializer = Callable[[Shape], np.ndarray]
Kind = TypeVar("Kind", Parameters, LookupParameters)
#: What `--dynet-weight-decay` sets.
default_decay = {"lam": 0.0}


def _normal(mean: float = 0, var: float = 1) -> Initializer:
    return lambda shape: generator().normal(mean, math.sqrt(var), shape)


def _uniform(scale: float) -> Initializer:
    return lambda shape: generator().uniform(-scale, scale, shape)


def _glorot(is_lookup: bool = False, gain: float = 1.0) -> Initializer:
    def values(shape: Shape) -> np.ndarray:
        axes = shape[1:] if is_lookup and len(shape) > 1 else shape
        squared = 3 * len(axes) / sum(axes)
        if len(shape) == 4:
            squared = 6 / (shape[0] * shape[1] * (shape[2] + shape[3]))
        return _uniform(gain * math.sqrt(squared))(shape)

    return values


def _from_file(fname: str) -> Initializer:
    def values(shape: Shape) -> np.ndarray:
        try:
            return np.array(Path(fname).read_text(encoding="utf-8").split(), np.float64).reshape(shape, order="F")
        except FileNotFoundError as error:
            raise EdBatchError(f"init={fname!r}: expected an initializer's name, or a file's ({error})") from None

    return values


#: Initializers, which make values of a shape, by DyNet's name.
TABLE = named(
    ConstInitializer=(lambda c: lambda shape: np.full(shape, c), "The same number everywhere."),
    NormalInitializer=(_normal, "Gaussian numbers, by mean and variance."),
    UniformInitializer=(_uniform, "Numbers in [-scale, scale)."),
    GlorotInitializer=(_glorot, "Uniform in ±gain √(3 n / Σ d) for n axes of sizes d; of convolutions, by the fans."),
    IdentityInitializer=(lambda: lambda shape: np.eye(shape[0]), "The identity, of square matrices."),
    NumpyInitializer=(lambda array: lambda shape: np.asarray(array, np.float64), "The values of an array."),
    FromFileInitializer=(_from_file, "Numbers in a file, column by column."),
)  # fmt: skip


def initial(
    init: Any, shape: Shape, is_lookup: bool, scale: float | None = None, mean: float = 0.0, std: float = 1.0,
    gain: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Initial values of a shape; `init`: None, a number, a name (or that of a file), an array or an initializer."""
    by_name: dict[str, Callable[[], Initializer]] = {
        "glorot": lambda: _glorot(is_lookup, gain), "uniform": lambda: _uniform(scale),  # type: ignore[arg-type]
        "normal": lambda: _normal(mean, std**2), "he": lambda: _normal(0.0, 2.0 / shape[0]),
        "identity": TABLE["IdentityInitializer"],
    }  # fmt: skip
    if init is None or isinstance(init, str):
        init = _from_file(init) if init and init not in by_name else by_name[init or "glorot"]()
    elif not callable(init):
        init = TABLE["NumpyInitializer" if np.ndim(init) else "ConstInitializer"](init)
    values: np.ndarray = init(shape)
    if values.shape != shape:
        raise EdBatchError(f"initial values of shape {values.shape} for a parameter of shape {shape}")
    return values


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
        self._decay["lam"] = lam

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


class Builder:
    """What adds its parameters to a part of a collection."""

    part: ClassVar[str]

    def __init__(self, model: ParameterCollection) -> None:
        self._model = model.add_subcollection(self.part)

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """A builder like another, whose `spec` this is: arguments before and after the collection."""
        make: Any = cls
        return make(*spec[:3], model, *spec[3:])


def _free(taken: dict[str, int], name: str) -> str:
    """A name that is not taken: `_0`, `_1`, ... without one, `W`, `W_1`, ... with."""
    if not isinstance(name, str) or "/" in name:
        raise EdBatchError(f"name {name!r}: expected one without '/'")
    number = taken.get(name, 0)
    taken[name] = number + 1
    return f"{name}_{number}" if number or not name else name
