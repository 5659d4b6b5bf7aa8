"""Keys of caches that tell apart what `==` does not: 1, 1.0 and True; 0.0 and -0.0."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any
from weakref import ref

import numpy as np


def exact(value: Any) -> Hashable:
    """Return a key that equals another only if both are made of the same types and the same bits.

    Tuples, frozen sets and frozen data classes are looked into; other objects are equal if they say so and are of one
    class.

    Raises:
        TypeError: the value, or a part of it, is not hashable.
    """
    kind = value.__class__
    if kind in _EQUAL_IF_SAME:
        return kind, value
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind is complex:
        return kind, struct.pack("<2d", value.real, value.imag)
    if isinstance(value, tuple):
        return (kind, *map(exact, value)) if value else (kind,)
    if isinstance(value, frozenset):
        return kind, frozenset(map(exact, value))
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    hash(value)  # or raise
    if is_dataclass(kind):
        return (kind, value, *(exact(getattr(value, field.name)) for field in fields(kind) if field.compare))
    return kind, value


class Identity:
    """An object that is equal to itself alone, kept alive only if it must be; when it ends, `gone` is given it."""

    __slots__ = ("held", "number")

    def __init__(self, value: Any, gone: list[Any] | None = None) -> None:
        self.number = id(value)  # while it is a key, also after the object's end: what has that number then is unequal
        try:
            self.held: Callable[[], Any] = ref(value) if gone is None else ref(value, gone.append)
        except TypeError:
            self.held = lambda: value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and (mine := self.held()) is not None and mine is other.held()

    def __hash__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        return repr(self.held())


_EQUAL_IF_SAME = frozenset((int, bool, str, type(None), type(...)))  # among values of one class
_bits_of = struct.Struct("<d").pack


def literal(value: Any, depth: int = 3) -> Hashable:
    """Return as exact a key in a third of the time; None of what is no literal, or deeper than shapes of shapes."""
    kind = value.__class__
    if kind is tuple or kind is list:
        classes = tuple(map(type, value))
        if _EQUAL_IF_SAME.issuperset(classes):
            return kind, classes, tuple(value)
        if not depth:
            return None
        parts = []
        for part in value:
            key = literal(part, depth - 1)
            if key is None:
                return None
            parts.append(key)
        return kind, tuple(parts)
    if kind in _EQUAL_IF_SAME:
        return kind, value
    if kind is float:
        return kind, _bits_of(value)
    if kind is slice:
        ends = literal((value.start, value.stop, value.step), depth)
        return ends and (kind, ends)
    return exact(value) if isinstance(value, np.number) else None
