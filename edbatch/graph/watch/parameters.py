"""What a trace reads of parameters and of collections of them, which it asks by methods of ours."""

from __future__ import annotations

from types import FrameType
from typing import Any
from weakref import ref

from edbatch.graph.model.names import Names
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.watch.getters import Get, weak_get
from edbatch.graph.watch.guard import MISSING, Read

# What reads numbers that a trace would freeze: they are others after each step.
_VALUES = ("value", "grad", "sparse_grad", "has_grad", "gradient_array", "gradient_rows", "__dlpack__")
READS_VALUES = {
    ("edbatch.graph.model.parameters", f"{kind}.{name}")
    for kind in ("Parameter", "LookupParameters")
    for name in _VALUES
} | {("edbatch.runtime.graph", name) for name in ("Graph.value", "Graph._run")}


def parameter_reads(frame: FrameType) -> tuple[Any, Read, list[Parameter]] | None:
    """What a call that begins reads, if it is one of those: the object that it reads of, the place, what is found.

    The place does not keep the object alive.
    """
    module, name, given = frame.f_globals.get("__name__"), frame.f_code.co_qualname, frame.f_locals
    if (module, name) == (Parameter.__module__, "Parameter.frozen"):
        one = given["self"]
        return one, Read(weak_get(one), "frozen", f"parameter {one.name!r}: frozen", one.frozen), []
    if (module, name) == (Names.__module__, "Names.listed"):
        names, prefix = given["self"], given["prefix"]
        found = names.listed(prefix)
        path = f"what is listed of {prefix or 'the parameters'}"
        return names, Read(_get(names, Names.listed), prefix, path, found), [names[one] for one in found]
    if module == "edbatch.graph.model.collection" and name.endswith((".__getitem__", ".__contains__")):
        asked = given["name"] if "name" in given else given["item"]
        if isinstance(asked, str):
            names, full = given["self"]._parameters, given["self"]._prefix + asked
            one = names.get(full, MISSING)
            read = Read(_get(names, dict.get), full, f"parameter {full!r}", one)
            return names, read, [] if one is MISSING else [one]
    return None


def _get(names: Names, method: Any) -> Get:
    """A method of what it does not keep alive; None, which no method gives, where that is no more."""
    held = ref(names)

    def get(key: Any, missing: Any) -> Any:
        found = held()
        return None if found is None else method(found, key, *[missing] * (method is dict.get))

    return get
