"""Which names code reads, and which attributes of an object or a class it can read by them."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.step import ATOMS, MISSING, held_by, is_atom, text_of

# What reads attributes that no code names.
_BY_NAME = {"getattr", "hasattr", "vars", "asdict", "astuple", "attrgetter", "methodcaller", "__dict__"}


class CodeNames(NamedTuple):
    """The names that code reads; `dynamic`: whether it may read attributes by others."""

    globals: frozenset[str]
    attributes: frozenset[str]
    dynamic: bool


@functools.lru_cache(10_000)
def names_of(code: CodeType) -> CodeNames:
    """The names that a code, and the codes of functions inside it, read."""
    scope: set[str] = set()
    attributes: set[str] = set()
    dynamic = False
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            scope.add(step.argval)
        elif step.opname.startswith("LOAD_") and step.opname.endswith(("_ATTR", "_METHOD")):
            attributes.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_of(constant)
            scope |= inner.globals
            attributes |= inner.attributes
            dynamic |= inner.dynamic
        texts = constant if isinstance(constant, tuple) else (constant,)  # for `getattr`, or of a pattern
        attributes.update(text for text in texts if isinstance(text, str) and text.isidentifier())
    return CodeNames(frozenset(scope), frozenset(attributes), dynamic or not _BY_NAME.isdisjoint(scope | attributes))


@functools.lru_cache(10_000)
def is_library(module: str) -> bool:
    """Whether a module is EdBatch's, Python's or an installed one: taken to compute the same of the same."""
    top = module.partition(".")[0]
    if top == "edbatch":
        return not module.startswith("edbatch.models")
    if top in sys.stdlib_module_names:
        return module != "__main__"
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


CELL_PREFIX = "_edbatch_cell_"  # begins the names of attributes in which objects keep the traces of their cells

#: What has parts that are attributes: what it is equal to has equal ones.
OPENED: dict[type, tuple[str, ...]] = {
    MethodType: ("__self__", "__func__"), functools.partial: ("func", "args", "keywords"),
    slice: ("start", "stop", "step"), SimpleNamespace: (),
}  # fmt: skip
#: What classes hold for methods: which one does not change, and it leads to functions.
WRAPPERS: dict[type, tuple[str, ...]] = {
    property: ("fget",), classmethod: ("__func__",), staticmethod: ("__func__",), functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
}  # fmt: skip

#: Special methods that Python calls without a name in the code, but for operators.
_SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        "call", "getitem", "len", "iter", "next", "contains", "bool", "float", "int", "index", "eq", "enter", "exit",
        "getattr", "getattribute", "get", "array", "missing",
    )
)  # fmt: skip

_OF_PARAMETERS = frozenset([*Parameter.__init__.__code__.co_names, *LookupParameters.__init__.__code__.co_names])


def names_in(value: Any, names: frozenset[str], everything: bool, is_users: bool) -> list[str]:
    """The names under which something is read of an object's dictionary; `everything`: the code may compute names."""
    own: dict[str, Any] = object.__getattribute__(value, "__dict__")
    if isinstance(value, Parameter):
        names = names.difference(_OF_PARAMETERS) | ({"_frozen"} if "frozen" in names else set())
    elif everything and is_users:
        names = names.union(name for name in list(own) if not name.startswith(CELL_PREFIX))
    elif not is_users and type(value).__module__.startswith("edbatch"):
        names = frozenset([name for name in names if own.get(name, own).__class__ in ATOMS])
    found = [name for name in list(own) if name in names or name == "__wrapped__"]
    if is_users:  # what it may get, where its class has a default
        later = everything or held_by(type(value), "__getattr__") is not MISSING
        lacking = sorted(names.difference(own))
        found += [name for name in lacking if later or held_by(type(value), name) is not MISSING]
    return found


def special_of(classes: Iterable[type], is_owners: bool) -> set[str]:
    """The special methods of classes that Python calls unasked; of the owner's no `__call__`, which no cell asks."""
    methods = {name for one in classes for name, held in list(vars(one).items()) if isinstance(held, FunctionType)}
    return methods.intersection(_SPECIAL).difference(["__call__"] * is_owners)


def slots_of(kind: type) -> Iterator[str]:
    """The names of what objects of a class have in slots."""
    for base in kind.__mro__:
        yield from (name for name, held in list(vars(base).items()) if isinstance(held, MemberDescriptorType))


def old_text(value: Any) -> str:
    """What errors say that a value was; empty of objects and of what is long."""
    few = isinstance(value, np.ndarray) and value.size <= 8
    return text_of(value) if few or value is MISSING or is_atom(value) or isinstance(value, Parameter) else ""
