"""Steps: how one thing that a function depends on is read of another, and what was there."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.exact import Identity, exact

MISSING: Any = object()  # what is read where there is nothing
ANY: Any = object()  # the token of what is not compared itself
ATOMS = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented))

ROOTS = OWNER, FUNCTION, STATIC = range(3)  # slots of what is read first; those of steps follow


class Read(IntEnum):
    """What a step reads of its holder; the extension in C has the same numbers."""

    ATTRIBUTE = 0
    VALUE = 1  # of a dictionary
    ITEM = 2
    HELD = 3  # by a class
    CLASS = 4
    SIZE = 5
    KEYS = 6
    PARTS = 7  # of an array, a set and the like


class Alias(NamedTuple):
    """The token of what is the same object as that of an earlier slot."""

    slot: int


class Step(NamedTuple):
    """One thing that is read.

    Attributes:
        holder: the slot of what it is read of.
        key: a name or a position; of SIZE the class, of KEYS what they were.
        path: what it is called.
        token: equal to that of what is there now, if that is as it was; a class: of what later steps look into.
        old: what was there, as text; empty if that is long, or an object.
    """

    kind: Read
    holder: int
    key: Any
    path: str
    token: Any
    old: str


def is_atom(value: Any) -> bool:
    """Whether a value is told by its type and bits, and cannot change."""
    return value.__class__ in ATOMS or isinstance(value, np.generic)


def text_of(value: Any) -> str:
    """A value as text; empty if that is long."""
    text = "nothing" if value is MISSING else repr(value)
    return text if len(text) < 60 else ""


def held_by(kind: type, name: str) -> Any:
    """What a class, or the first of its bases that does, holds under a name."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)


def attribute_of(value: Any, name: str) -> Any:
    """What an object has under a name, whatever its class says."""
    try:
        return object.__getattribute__(value, name)
    except (AttributeError, ValueError):  # of a closure, nothing yet
        return MISSING


READ: tuple[Callable[[Any, Any], Any], ...] = (
    attribute_of,
    lambda found, key: dict.get(found, key, MISSING),
    lambda items, at: list.__getitem__(items, at) if isinstance(items, list) else tuple.__getitem__(items, at),
    held_by,
    lambda value, _: type(value),
    lambda items, _: len(items),
    lambda found, _: tuple(dict.keys(found)),
    lambda value, _: value,
)


def token(value: Any, kind: int = Read.VALUE, gone: list[Any] | None = None) -> Any:
    """Something that equals another's if and only if a trace may not tell the values apart.

    Args:
        kind: of the step that reads it: of PARTS, an array goes by its bits, a set or the like by what it has.
        gone: is told when an object ends.
    """
    if is_atom(value) or kind == Read.KEYS:
        return exact(value)
    if kind == Read.PARTS:
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return value.dtype, value.shape, value.tobytes()
        if isinstance(value, bytearray | array):
            return type(value), bytes(value)
        inside = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        if isinstance(value, dict):
            inside = (*value, *value.values())
        parts = [token(part) for part in inside]
        return type(value), frozenset(parts) if isinstance(value, set | frozenset) else tuple(parts)
    return value if value is MISSING else Identity(value, gone)
