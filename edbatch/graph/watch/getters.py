"""How places are read again without keeping alive what they are in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any
from weakref import ref

Get = Callable[[Any, Any], Any]  # `get(key, MISSING)`

GONE: Any = object()  # what is read of an object that is no more; no place has ever held it


def weak_get(value: Any) -> Get:
    """`getattr` of an object that it does not keep alive, if that can be."""
    try:
        held = ref(value)
    except TypeError:
        return partial(getattr, value)

    def get(name: Any, missing: Any) -> Any:
        found = held()
        return GONE if found is None else getattr(found, name, missing)

    return get


def weak_vars_get(value: Any) -> Get:
    """`get` of the dictionary of an object that neither it nor the dictionary keeps alive, if that can be."""
    try:
        held = ref(value)
    except TypeError:
        own: Get = vars(value).get
        return own

    def get(name: Any, missing: Any) -> Any:
        found = held()
        return GONE if found is None else found.__dict__.get(name, missing)

    return get


def closure_get(function: FunctionType, name: str) -> Get:
    """`getattr` of the place of a variable from around a function, which it does not keep alive."""
    held, at = ref(function), function.__code__.co_freevars.index(name)

    def get(key: Any, missing: Any) -> Any:
        found = held()
        return GONE if found is None else getattr((found.__closure__ or ())[at], key, missing)

    return get


def there_get(get: Get, key: Any, value: Any) -> Get:
    """A value that lies in a place, as long as it lies there.

    It is known by its `id`: if that is another's, it is no more itself, and nobody can read it.
    """
    number = id(value)

    def there(_key: Any, missing: Any) -> Any:
        found = get(key, missing)
        return found if id(found) == number else GONE

    return there
