"""Values taken apart into integers and a form, which says all else: of one form, values differ in integers alone.

Tuples, named tuples, lists, dictionaries, data classes and arrays of int64, or of records of these, are looked into.
What else there is belongs to the form. Other modules say what objects of their classes are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from edbatch.base.exact import exact

Form = Any  # int, or a tuple that begins with a class


class Same:
    """What belongs to a form: it equals what is exactly equal, or, of objects that are compared by identity, itself."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key: Hashable = value if value.__class__.__eq__ is object.__eq__ else exact(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def form_of(value: Any, integers: list[int]) -> Form:
    """Return the form of a value, whose integers are appended."""
    kind = value.__class__
    if kind is int:
        integers.append(value)
        return int
    if kind is Same:
        return Same, value
    if kind in _parts:
        return kind, form_of(_parts[kind][0](value), integers)
    if isinstance(value, tuple) or kind is list:
        return (kind, *[form_of(part, integers) for part in value])
    if kind is dict:
        return dict, form_of(tuple(value.items()), integers)
    if kind is np.ndarray:
        words = value.view(np.int64).tolist() if value.size else []
        integers += words
        return kind, value.dtype, len(words)
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        return (kind, *[form_of(getattr(value, field.name), integers) for field in fields(kind)])
    return Same, Same(value)


def made_of(form: Form, integers: np.ndarray) -> Any:
    """Make the value of a form and its integers, int64, whose memory arrays share."""
    numbers, at = integers.tolist(), 0

    def make(form: Form) -> Any:
        nonlocal at
        if form is int:
            at += 1
            return numbers[at - 1]
        kind = form[0]
        if kind is Same:
            return form[1].value
        if kind is np.ndarray:
            begin, at = at, at + form[2]
            return np.frombuffer(integers, form[1], 8 * form[2] // form[1].itemsize, 8 * begin)
        if kind in _parts:
            return _parts[kind][1](make(form[1]))
        if kind is dict:
            return dict(make(form[1]))
        parts = [make(part) for part in form[1:]]
        return parts if kind is list else tuple(parts) if kind is tuple else kind(*parts)

    return make(form)


class _Known:
    """What is the same whatever the integers that are left."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def with_known(form: Form, integers: np.ndarray, varies: np.ndarray) -> tuple[Form, np.ndarray]:
    """A form with all that does not vary filled in, and which integers it leaves.

    Args:
        integers: of a value of the form.
        varies: per integer, whether it is another in other values.
    """
    left = np.zeros(len(varies), np.bool_)
    at = 0

    def filled(form: Form) -> Form:
        nonlocal at
        begin, end = at, at + _count(form)
        if not varies[begin:end].any():
            at = end
            return Same, _Known(made_of(form, integers[begin:end].copy()))
        if form is int or form[0] is np.ndarray:
            left[begin:end], at = True, end
            return form
        return (form[0], *[filled(part) for part in form[1:]])

    return filled(form), left


def _count(form: Form) -> int:
    if form is int:
        return 1
    if form[0] is Same:
        return 0
    return form[2] if form[0] is np.ndarray else sum(map(_count, form[1:]))


def taken_apart_as(kind: type, parts: Callable[[Any], Any], made: Callable[[Any], Any]) -> None:
    """Have objects of a class taken apart as something else is: `parts` makes that of one, `made` the object again."""
    _parts[kind] = parts, made


_parts: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
