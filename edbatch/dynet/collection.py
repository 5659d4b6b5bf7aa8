"""Collections of parameters, whose names are paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer, probability
from edbatch.dynet.implicit import implicit
from edbatch.dynet.initializers import initial
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.errors import EdBatchError

Kind = TypeVar("Kind", Parameters, LookupParameters)


class WeightDecay:
    """How much of every parameter an update leaves: 1 - λ."""

    def __init__(self, lam: float = 0.0) -> None:
        self.lam = lam


DEFAULT = WeightDecay()  # what `--dynet-weight-decay` sets


class ParameterCollection:
    """The parameters of a model; `Model` is another name of it.

    Example:
        >>> from edbatch import dynet as dy
        >>> model = dy.ParameterCollection()
        >>> W, part = model.add_parameters((2, 3)), model.add_subcollection("part")
        >>> b = part.add_parameters(2, name="b", init=0.0)
        >>> [x.name() for x in model.parameters_list()], model.parameter_count()
        (['/_0', '/part/b'], 8)
        >>> dy.close_cg()
    """

    def __init__(self) -> None:
        implicit.opened()  # expressions of parameters alone have to be of some graph
        self._prefix = "/"
        self._parents: list[ParameterCollection] = []
        self._all: list[eb.Parameter] = []
        self._taken: tuple[dict[str, int], dict[str, int]] = {}, {}  # names of parameters, and of parts
        self._decay = WeightDecay(DEFAULT.lam)

    def name(self) -> str:
        """The path that begins the names of its parameters."""
        return self._prefix

    def add_subcollection(self, name: str = "") -> ParameterCollection:
        """A part of this collection, with a path of its own."""
        part = ParameterCollection()
        part._prefix = f"{self._prefix}{_free(self._taken[1], name)}/"
        part._parents = [self, *self._parents]
        part._decay = self._decay
        return part

    def add_parameters(
        self, dim: Any, init: Any = None, name: str = "", device: str = "",
        scale: float | None = None, mean: float | None = None, std: float | None = None, gain: float | None = None,
    ) -> Parameters:  # fmt: skip
        """Add an array; `init` is a number, an array, an initializer, or the name of one."""
        shape = _shape_of(dim, init)
        values = initial(init, shape, False, scale=scale, mean=mean, std=std, gain=gain)
        return self._add(Parameters, name, values)

    def add_lookup_parameters(
        self, dim: Any, init: Any = None, name: str = "", device: str = "",
        scale: float | None = None, mean: float | None = None, std: float | None = None, gain: float | None = None,
    ) -> LookupParameters:  # fmt: skip
        """Add a table; `dim` begins with the number of its rows."""
        shape = _shape_of(dim, init)
        values = initial(init, shape, True, scale=scale, mean=mean, std=std, gain=gain)
        return self._add(LookupParameters, name, values)

    def parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> Parameters:
        """Add an array with these values."""
        return self._add(Parameters, name, np.asarray(array, np.float64))

    def lookup_parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> LookupParameters:
        """Add a table with these values."""
        return self._add(LookupParameters, name, np.asarray(array, np.float64))

    def parameters_list(self) -> list[Parameters]:
        """All parameters but tables, of parts too."""
        return [x for x in self._all if isinstance(x, Parameters)]

    def lookup_parameters_list(self) -> list[LookupParameters]:
        """All tables, of parts too."""
        return [x for x in self._all if isinstance(x, LookupParameters)]

    def parameter_count(self) -> int:
        """How many numbers all parameters hold."""
        return sum(x.spec.size for x in self._all)

    def __iter__(self) -> Iterator[eb.Parameter]:
        return iter(self._all)

    def set_weight_decay(self, lam: float) -> None:
        """After each update, every parameter is multiplied by 1 - `lam`."""
        self._decay.lam = probability("set_weight_decay: lam", lam)

    set_weight_decay_lambda = set_weight_decay

    def get_weight_decay(self) -> float:
        """What `set_weight_decay` set."""
        return self._decay.lam

    def save(self, fname: str, name: str = "", append: bool = False) -> None:
        """Write all parameters to a file in DyNet's text format; their names begin with `name` instead of the path."""
        from edbatch.dynet.files import save_collection

        save_collection(self, fname, name, append)

    def populate(self, fname: str, name: str = "") -> None:
        """Read the values of all parameters from a file in DyNet's text format, in their order."""
        from edbatch.dynet.files import populate_collection

        populate_collection(self, fname, name)

    def load_param(self, fname: str, name: str) -> Parameters:
        """Add the parameter of a file that has this name there."""
        from edbatch.dynet.files import find_one

        return self._add(Parameters, "", find_one(fname, name, Parameters))

    def load_lookup_param(self, fname: str, name: str) -> LookupParameters:
        """Add the table of a file that has this name there."""
        from edbatch.dynet.files import find_one

        return self._add(LookupParameters, "", find_one(fname, name, LookupParameters))

    def write_to_textfile(self, fname: str, key: str = "", append: bool = False) -> None:
        """As `save`."""
        self.save(fname, key, append)

    def populate_from_textfile(self, fname: str, key: str = "") -> None:
        """As `populate`."""
        self.populate(fname, key)

    def reset_gradient(self) -> None:
        """Forget all gradients."""
        for parameter in self._all:
            parameter.zero_grad()

    def _add(self, kind: Callable[[str, np.ndarray], Kind], name: str, values: np.ndarray) -> Kind:
        made = kind(f"{self._prefix}{_free(self._taken[0], name)}", np.asarray(values, np.float32))
        for collection in (self, *self._parents):
            collection._all.append(made)
        return made


Model = ParameterCollection


def _shape_of(dim: Any, init: Any) -> tuple[int, ...]:
    """A shape, of an integer, a tuple, or DyNet's pair of dimensions and batch size."""
    sizes = (dim,) if isinstance(dim, int | np.integer | float | str) or dim is None else dim
    return tuple(integer("add_parameters: dim", size, 1) for size in sizes)


def _free(taken: dict[str, int], name: str) -> str:
    """A name that is not taken: `_0`, `_1`, ... without one, `W`, `W_1`, ... with."""
    if not isinstance(name, str) or "/" in name:
        raise EdBatchError(f"name {name!r}: expected one without '/'")
    number = taken.get(name, 0)
    taken[name] = number + 1
    return f"{name}_{number}" if number or not name else name
