"""`dy.save` and `dy.load`: parameters and builders together, in a file of values and one of what they are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.implicit import DynetError
from edbatch.dynet.parameters import LookupParameters, Parameters


def save(basename: str, objects: Iterable[Any]) -> None:
    """Write parameters, tables and builders to `basename.data` and `basename.meta`.

    Builders of one's own have `param_collection()`, `.spec` and `from_spec(spec, model)`.
    """
    data = f"{basename}.data"
    Path(data).write_text("", encoding="utf-8")
    with open(f"{basename}.meta", "wb") as meta:
        for one in objects:
            if isinstance(one, Parameters | LookupParameters):
                pickle.dump((type(one).__name__, str(one.name)), meta)
                one.save(data, append=True)
            elif hasattr(one, "param_collection") and hasattr(one, "spec") and hasattr(one, "from_spec"):
                builder: Any = one
                collection = builder.param_collection()
                pickle.dump((type(one), builder.spec, collection.name()), meta)
                collection.save(data, append=True)
            else:
                raise DynetError(f"Cannot save model objects of type {type(one).__name__}")


class _Known(pickle.Unpickler):
    """Finds the classes of files that DyNet wrote."""

    def find_class(self, module: str, name: str) -> Any:
        """A class by its name."""
        return super().find_class("edbatch.dynet" if module in ("_dynet", "dynet") else module, name)


def load_generator(basename: str, params: ParameterCollection) -> Iterator[Any]:
    """`load`, one by one. What is loaded is code, as of every pickle: read files that you trust."""
    data = f"{basename}.data"
    with open(f"{basename}.meta", "rb") as meta:
        while True:
            try:
                found = _Known(meta).load()
            except EOFError:
                return
            if len(found) == 2:
                kind, name = found
                yield params.load_param(data, name) if kind == "Parameters" else params.load_lookup_param(data, name)
            else:
                kind, spec, name = found
                made = kind.from_spec(spec, params)
                made.param_collection().populate(data, name)
                yield made


def load(basename: str, params: ParameterCollection) -> list[Any]:
    """Add to a collection what `save` wrote, and return it in order."""
    return list(load_generator(basename, params))
