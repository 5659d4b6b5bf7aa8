"""DyNet's text format: a line about each parameter, one of its values by columns, and one of its gradient, if any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.dynet.implicit import DynetError

_KINDS = {False: "#Parameter#", True: "#LookupParameter#"}  # whether it is a table


def text_of(x: Any, name: str) -> str:
    """A parameter as DyNet writes it: arrays column by column, tables row after row, each by columns."""
    shape, is_table = x.spec.shape, isinstance(x, eb.LookupParameters)
    arrays = [x.as_array(), *([x.grad_as_array()] if x.has_grad else [])]
    if is_table:
        shape, arrays = (*shape[1:], shape[0]), [np.moveaxis(array, 0, -1) for array in arrays]
    lines = ["".join(f"{entry:+.8e} " for entry in array.reshape(-1, order="F").tolist()) + "\n" for array in arrays]
    head = f"{_KINDS[is_table]} {name} {{{','.join(map(str, shape))}}} {sum(map(len, lines))}"
    return "".join([head, " FULL_GRAD\n" if x.has_grad else " ZERO_GRAD\n", *lines])


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


def _read(fname: str) -> Iterator[tuple[bool, str, np.ndarray]]:
    """Of the parameters in a file whether each is a table, its name and values."""
    try:
        lines = iter(Path(fname).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise DynetError(f"Could not read model from {fname}: {error}") from None
    for line in filter(str.strip, lines):
        try:
            kind, name, dims, *_, grad = line.split()
            sizes = tuple(int(size) for size in dims.strip("{}").split(",") if size)
            values = np.array(next(lines).split(), np.float64).reshape(sizes, order="F")
            if grad == "FULL_GRAD":
                next(lines)
            is_table = {kind: is_table for is_table, kind in _KINDS.items()}[kind]
        except (KeyError, ValueError, StopIteration) as error:
            raise DynetError(f"{fname}: expected DyNet's text format, got {line.strip()!r} ({error})") from None
        yield is_table, name, np.moveaxis(values, -1, 0) if is_table else values


def save_one(x: Any, fname: str, key: str = "", append: bool = False) -> None:
    """Write one parameter to a file in DyNet's text format, under a key, by default its name."""
    _write(fname, text_of(x, key or x.name()), append)


def save_collection(collection: Any, fname: str, name: str = "", append: bool = False) -> None:
    """Write all parameters to a file in DyNet's text format; their names begin with `name` instead of the path."""
    if name and not name.startswith("/"):
        raise DynetError(f"save: expected a key that begins with '/', got {name!r}")
    _write(fname, text_of_collection(collection, name and f"{name.rstrip('/')}/"), append)


def _fill(x: Any, values: np.ndarray, name: str) -> None:
    if values.shape != x.spec.shape:
        raise DynetError(
            f"Dimensions of parameter {name} looked up from file ({values.shape}) do not match parameters to be "
            f"populated ({x.spec.shape})"
        )
    x.zero_grad()
    eb.Parameter.set_value(x, values)


def populate_one(x: Any, fname: str, key: str = "") -> None:
    """Read the values from a file in DyNet's text format: of the parameter `key`, by default of the first."""
    _fill(x, find_one(fname, key, isinstance(x, eb.LookupParameters)), key or x.name())


def populate_collection(collection: Any, fname: str, name: str = "") -> None:
    """Read the values of all parameters, in their order, from those of a file whose names begin with `name`."""
    waiting = {False: collection.parameters_list(), True: collection.lookup_parameters_list()}
    for is_table, found, values in _read(fname):
        if found.startswith(name):
            if not waiting[is_table]:
                raise DynetError(f"{fname}: more parameters than there are in the collection")
            _fill(waiting[is_table].pop(0), values, found)
    if any(waiting.values()):
        raise DynetError(f"Number of parameter objects loaded from file {fname} did not match number to be populated")


def find_one(fname: str, name: str, is_table: bool) -> np.ndarray:
    """The values of the first parameter or table of a file that has a name; "" is any."""
    for kind, found, values in _read(fname):
        if found == (name or found) and kind == is_table:
            return values
    raise DynetError(f"Could not find key {name} in the model file {fname}")
