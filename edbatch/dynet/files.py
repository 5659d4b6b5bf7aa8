"""DyNet's files: its text format, and what `dy.save` writes.

In the text format there are a line about each parameter, one of its values by columns, and one of its gradient, if any.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable, Iterator
from operator import attrgetter
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


def save(basename: str, objects: Iterable[Any]) -> None:
    """Write parameters, tables and builders to `basename.data` and `basename.meta`, each replaced in one step.

    Builders of one's own have `param_collection()`, `.spec` and `from_spec(spec, model)`; their `.spec` holds numbers,
    texts, classes of builders, and tuples, lists and dictionaries of them.
    """
    data, meta = "", b""
    for one in objects:
        if isinstance(one, eb.Parameter):
            meta += pickle.dumps((type(one).__name__, str(one.name)))
            data += text_of(one, str(one.name))
        elif hasattr(one, "spec") and _is_builder(type(one)):
            collection = one.param_collection()
            record = pickle.dumps((type(one), one.spec, collection.name()))
            _Known(io.BytesIO(record), f"Cannot save {type(one).__name__}: its spec").load()
            meta += record
            data += text_of_collection(collection)
        else:
            raise DynetError(f"Cannot save model objects of type {type(one).__name__}")
    write_atomically(f"{basename}.data", data)
    write_atomically(f"{basename}.meta", meta)


def _is_builder(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "param_collection") and hasattr(kind, "from_spec")


class _Known(pickle.Unpickler):
    """Finds classes of builders, of DyNet and of the program: no other code is in files that `save` writes."""

    def __init__(self, file: Any, place: str) -> None:
        super().__init__(file)
        self._place = place

    def find_class(self, module: str, name: str) -> Any:
        """A class of builders by its name; its module is not imported for it; a `DynetError` if it is none."""
        imported = sys.modules.get("edbatch.dynet" if module in ("_dynet", "dynet") else module)
        try:
            found = attrgetter(name)(imported)
        except AttributeError:
            found = None
        if _is_builder(found):
            return found
        raise DynetError(
            f"{self._place}: holds {module}.{name}; expected numbers, texts and classes of builders (with from_spec "
            "and param_collection), whose modules have been imported"
        )


def load_generator(basename: str, params: Any) -> Iterator[Any]:
    """`load`, one by one; a DynetError if files hold other than parameters and builders of imported classes."""
    data = f"{basename}.data"
    with open(f"{basename}.meta", "rb") as meta:
        while True:
            try:
                kind, *spec, name = _Known(meta, meta.name).load()
            except EOFError:
                return
            except pickle.UnpicklingError as error:
                raise DynetError(f"{meta.name}: expected what dy.save writes ({error})") from None
            if not spec:
                yield params.load_param(data, name) if kind == "Parameters" else params.load_lookup_param(data, name)
            else:
                made = kind.from_spec(*spec, params)
                made.param_collection().populate(data, name)
                yield made


def load(basename: str, params: Any) -> list[Any]:
    """Add to a collection what `save` wrote, and return it in order."""
    return list(load_generator(basename, params))
