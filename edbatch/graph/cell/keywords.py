"""Keys of what is given to a cell by keyword, which keep no model alive."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from types import MethodType
from typing import Any

from edbatch.base.exact import Identity, exact
from edbatch.graph.step import is_atom

#: Tuples in tuples that are given by keyword, at most: what else goes through them calls itself for each.
DEEPEST = 100


def keyword_key(value: Any, left: int = DEEPEST) -> Hashable:
    """A key as exact as `exact`'s that keeps no object alive that may hold parameters: it is equal to itself alone.

    Raises:
        TypeError: a part is not hashable, or there are more than `left` tuples in tuples.
    """
    kind: Any = value.__class__
    if is_atom(value):
        return exact(value)
    if not left:
        raise TypeError(f"tuples in tuples, more than {DEEPEST} deep")
    if isinstance(value, tuple):
        return (kind, *(keyword_key(part, left - 1) for part in value))
    if isinstance(value, frozenset):
        return kind, frozenset(keyword_key(part, left - 1) for part in value)
    if kind is MethodType:  # another object each time it is asked for
        return kind, Identity(value.__self__), Identity(value.__func__)
    hash(value)  # or raise
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        parts = [getattr(value, field.name) for field in fields(value) if field.compare]
        return (kind, *(keyword_key(part, left - 1) for part in parts))
    if not kind.__weakrefoffset__ or _is_value(value):
        return exact(value)
    return kind, Identity(value)


_PLAIN = frozenset([bool, int, float, str, type(None)])


def text_of(given: dict[str, Any]) -> str:
    """What is given by keyword as a text that tells it from all else, as fast as that can be.

    Raises:
        KeyError: it is something else than truth values, numbers and texts.
    """
    for value in given.values():
        if value.__class__ not in _PLAIN:
            raise KeyError
    return str(given) if given else ""


def may_change(value: Any) -> bool:
    """Whether a value may hold something else later, so that which one it is does not tell what it is."""
    if isinstance(value, tuple | frozenset):
        return any(map(may_change, value))
    return not is_atom(value)


def is_gone(key: Any) -> bool:
    """Whether a key has a part that is no more, so that no call has it again."""
    if isinstance(key, Identity):
        return key.held() is None
    return isinstance(key, tuple | frozenset) and any(map(is_gone, key))


def _is_value(value: Any) -> bool:
    """Whether a value says what it is equal to, and holds nothing but numbers and texts."""
    kind: Any = value.__class__
    return kind.__eq__ is not object.__eq__ and all(map(is_atom, getattr(value, "__dict__", {}).values()))
