"""Collections of parameters, whose names are paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import sizes, within
from edbatch.dynet.files import find_one, populate_collection, save_collection
from edbatch.dynet.implicit import implicit
from edbatch.dynet.initializers import initial
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.errors import EdBatchError

Kind = TypeVar("Kind", Parameters, LookupParameters)
#: What `--dynet-weight-decay` sets.
default_decay = {"lam": 0.0}


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
