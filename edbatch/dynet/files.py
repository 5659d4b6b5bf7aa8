"""DyNet's text format: a line about each parameter, one of its values by columns, and one of its gradient, if any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.dynet.implicit import DynetError
from edbatch.dynet.parameters import LookupParameters, Parameters

_KINDS = {"#Parameter#": Parameters, "#LookupParameter#": LookupParameters}


class Saved(NamedTuple):
    """A parameter in a file; `values` are of the parameter's shape."""

    kind: type
    name: str
    values: np.ndarray


def _line(array: np.ndarray) -> str:
    return "".join(f"{x:+.8e} " for x in array.reshape(-1).tolist()) + "\n"


def _by_columns(x: eb.Parameter, array: np.ndarray) -> np.ndarray:
    """Entries as DyNet stores them: of a table row after row, each by columns."""
    if isinstance(x, LookupParameters):
        return np.concatenate([row.reshape(-1, order="F") for row in array])
    return array.reshape(-1, order="F")


def text_of(x: Any, name: str) -> str:
    """A parameter as DyNet writes it."""
    shape = x.spec.shape
    is_table = isinstance(x, LookupParameters)
    dims = ",".join(str(size) for size in ((*shape[1:], shape[0]) if is_table else shape))
    text = _line(_by_columns(x, x.as_array()))
    text += _line(_by_columns(x, x.grad_as_array())) if x.has_grad else ""
    kind = "#LookupParameter#" if is_table else "#Parameter#"
    return f"{kind} {name} {{{dims}}} {len(text)} {'FULL_GRAD' if x.has_grad else 'ZERO_GRAD'}\n{text}"


def text_of_collection(collection: Any, prefix: str = "") -> str:
    """All parameters of a collection; their names begin with a prefix, if there is one, in the place of the path."""
    own = len(collection.name()) if prefix else 0
    every = (*collection.parameters_list(), *collection.lookup_parameters_list())
    return "".join(text_of(x, prefix + x.name()[own:]) for x in every)


def _write(fname: str, text: str, append: bool) -> None:
    """Replace a file in one step, or add to it."""
    if not append:
        write_atomically(fname, text)
        return
    with open(fname, "a", encoding="utf-8") as file:
        file.write(text)


def read(fname: str) -> Iterator[Saved]:
    """The parameters in a file."""
    try:
        file = Path(fname).open(encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise DynetError(f"Could not read model from {fname}: {error}") from None
    with file:
        while line := file.readline():
            if not line.strip():
                continue
            try:
                kind, name, dims, *_, grad = line.split()
                sizes = tuple(int(size) for size in dims.strip("{}").split(",") if size)
                values = np.array(file.readline().split(), np.float64)
                if grad == "FULL_GRAD":
                    file.readline()
                if _KINDS[kind] is Parameters:
                    found = values.reshape(sizes, order="F")
                else:
                    found = np.stack([row.reshape(sizes[:-1], order="F") for row in values.reshape(sizes[-1], -1)])
            except (KeyError, ValueError) as error:
                raise DynetError(f"{fname}: expected DyNet's text format, got {line.strip()!r} ({error})") from None
            yield Saved(_KINDS[kind], name, found)


def save_one(x: Any, fname: str, key: str, append: bool) -> None:
    """Write one parameter under a key, by default its name."""
    _write(fname, text_of(x, key or x.name()), append)


def save_collection(collection: Any, fname: str, key: str, append: bool) -> None:
    """Write all parameters of a collection; their names begin with a key in the place of the path."""
    prefix = key if not key or key.endswith("/") else f"{key}/"
    if prefix and not prefix.startswith("/"):
        raise DynetError(f"save: expected a key that begins with '/', got {key!r}")
    _write(fname, text_of_collection(collection, prefix), append)


def _fill(x: Any, values: np.ndarray, name: str) -> None:
    if values.shape != x.spec.shape:
        raise DynetError(
            f"Dimensions of parameter {name} looked up from file ({values.shape}) do not match parameters to be "
            f"populated ({x.spec.shape})"
        )
    x.zero_grad()
    eb.Parameter.set_value(x, values)


def populate_one(x: Any, fname: str, key: str) -> None:
    """Read the values of the parameter of a file that has a key, by default of the first of its kind."""
    values = next((one.values for one in read(fname) if one.name == key or (not key and isinstance(x, one.kind))), None)
    if values is None:
        raise DynetError(f"Could not find key {key} in the model file {fname}")
    _fill(x, values, key or x.name())


def populate_collection(collection: Any, fname: str, key: str) -> None:
    """Read the values of all parameters of a collection, in their order, from those whose names begin with a key."""
    dense, tables = iter(collection.parameters_list()), iter(collection.lookup_parameters_list())
    for one in read(fname):
        if not one.name.startswith(key):
            continue
        x: Any = next(dense if one.kind is Parameters else tables, None)
        if x is None:
            raise DynetError(f"{fname}: more parameters than there are in the collection")
        _fill(x, one.values, one.name)
    if next(dense, None) is not None or next(tables, None) is not None:
        raise DynetError(f"Number of parameter objects loaded from file {fname} did not match number to be populated")


def find_one(fname: str, name: str, kind: type) -> np.ndarray:
    """The values of the parameter of a file that has a name."""
    for one in read(fname):
        if one.name == name and one.kind is kind:
            return one.values
    raise DynetError(f"Could not find key {name} in the model file {fname}")
