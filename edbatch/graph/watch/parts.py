"""What is inside of objects: the parts of containers, what functions have cached, and the codes inside a code."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Iterator
from types import CodeType, MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from edbatch.graph.watch.guard import CONTENTS

CELL_PREFIX = "_edbatch_cell_"  # begins the names of attributes in which objects keep the traces of their cells
LARGE = 1000  # parts of a container whose name a code does not mention


def is_python(kind: type) -> bool:
    """Whether all that an object holds are attributes: its classes are written in Python."""
    return all(
        base is object or base is SimpleNamespace or (base.__flags__ & 1 << 9 and not _has_state(base))
        for base in kind.__mro__
    )


def _has_state(kind: type) -> bool:
    """Whether objects have more than dictionary, weak references and slots by a class (which a C compiler made)."""
    slots = vars(kind).get("__slots__", ())
    count = 1 if isinstance(slots, str) else len(tuple(slots))
    base = kind.__base__.__basicsize__ if kind.__base__ is not None else 0
    return kind.__basicsize__ - base > 8 * (count + 2)


def cached(function: Any) -> dict[Any, list[Any]]:
    """What a function that remembers its results has returned, by what it was asked for; with attributes of its own.

    A cache of limited size may not show what is in its entries. Then the entry stands for it, which is another one once
    the result was forgotten and found again.
    """
    found: dict[Any, list[Any]] = {}
    for held in gc.get_referents(function):
        for key, part in list(held.items()) if isinstance(held, dict) else ():
            links = gc.get_referents(part) if type(part).__module__ == "functools" else [part]
            found[key] = [one for one in links if type(one).__module__ != "functools"] or [part]
    return found


class Remembered:
    """A place: what a function remembers for what it had been asked for when this was made.

    A remembered result is returned without a look at what it followed from. When it is forgotten, that is read again,
    and may have changed meanwhile.
    """

    def __init__(self, function: Any) -> None:
        self._function = weakref.ref(function)
        self._keys = list(cached(function))

    def __call__(self, key: Any, missing: Any) -> Any:
        """The results, each as a list; `missing` for what it has forgotten."""
        function = self._function()
        found = {} if function is None else cached(function)
        return [found.get(key, missing) for key in self._keys]


def opened(seen: dict[int, tuple[str, Any]], other: dict[int, Any]) -> dict[int, tuple[str, Any]]:
    """With what those of the containers hold that are made anew, and are not among the others."""
    found, todo = dict(seen), deque(seen.values())
    while todo:
        name, value = todo.popleft()
        if isinstance(value, CONTENTS) and id(value) not in other and size(value) <= LARGE:
            fresh = {id(part): (f"{name}{at}", part) for at, part in parts(value) if id(part) not in found}
            found |= fresh
            todo.extend(fresh.values())
    return found


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container, with names."""
    if isinstance(value, dict | MappingProxyType):
        for key, part in value.items():
            yield f"[{key!r}]", part
            yield f" (key {key!r})", key
    elif isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            yield from ((f"[{at}]", part) for at, part in enumerate(value.ravel().tolist()))
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{at}]", part) for at, part in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((" (one of it)", part) for part in value)


def size(value: Any) -> int:
    """How many parts a container has."""
    return value.size if isinstance(value, np.ndarray) else 1 if isinstance(value, np.generic) else len(value)


def inner(code: CodeType) -> Iterator[CodeType]:
    """The codes of functions that are made when this one runs."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from inner(part)
