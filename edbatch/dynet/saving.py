"""`dy.save` and `dy.load`: parameters and builders together, in a file of values and one of what they are."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.dynet.files import text_of, text_of_collection
from edbatch.dynet.implicit import DynetError


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
    """Finds classes of builders, of DyNet and of the program: no other code is in files that `save` writes.

    Args:
        file: to read.
        place: what an error begins with.
    """

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
    """`load`, one by one.

    Raises:
        DynetError: the files hold other than parameters and builders, whose classes the program has imported.
    """
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
