"""The names that code reads, and whose code it is."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType
from typing import NamedTuple

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
