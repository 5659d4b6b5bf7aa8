"""What arguments have to be, and clear errors where something is given that Python itself would complain about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from types import FunctionType
from typing import Any

import numpy as np

from edbatch.dynet.implicit import DynetError, DynetIndexError, DynetOverflowError, DynetTypeError
from edbatch.errors import EdBatchError, shown

_RAW = TypeError, ValueError, AttributeError, IndexError, KeyError, ZeroDivisionError, OverflowError
#: Programs that catch what DyNet raises catch these.
_KINDS: dict[type[Exception], type[EdBatchError]] = {
    TypeError: DynetTypeError,
    IndexError: DynetIndexError,
    OverflowError: DynetOverflowError,
}


def integer(place: str, value: Any, least: int = 0) -> int:
    """An integer, which may be written as a number without a fraction.

    Example:
        >>> integer("pick: index", 2.0)
        2
    """
    if value.__class__ is int and value >= least:
        return value
    try:
        found = int(value) if isinstance(value, float | np.floating) and value.is_integer() else index(value)
    except TypeError:
        raise DynetTypeError(f"{place}: expected an integer, got {shown(value)}") from None
    if found < least:
        raise EdBatchError(f"{place}: expected an integer from {least} on, got {found}")
    return found


def integers(place: str, values: Iterable[Any]) -> list[int]:
    """Integers from 0 on, at least one."""
    try:
        found = [integer(place, value) for value in values]
    except TypeError as error:
        if isinstance(error, EdBatchError):
            raise
        raise DynetTypeError(f"{place}: expected a list of integers, got {shown(values)}") from None
    if not found:
        raise EdBatchError(f"{place}: expected at least one integer, got none")
    return found


def number(place: str, value: Any) -> float:
    """A real number."""
    if isinstance(value, str):
        raise DynetTypeError(f"{place}: expected a number, got {shown(value)}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DynetTypeError(f"{place}: expected a number, got {shown(value)}") from None


def probability(place: str, value: Any) -> float:
    """A number from 0 to 1."""
    found = number(place, value)
    if not 0 <= found <= 1:
        raise DynetError(f"{place}: expected a number from 0 to 1, got {found}")
    return found


def positive(place: str, value: Any) -> float:
    """A number from 0 on."""
    found = number(place, value)
    if not 0 <= found < math.inf:
        raise EdBatchError(f"{place}: expected a finite number from 0 on, got {found}")
    return found


def guarded(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that names itself where Python raises an error of its own, as of None in an expression's place."""

    @wraps(call)
    def guard(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except EdBatchError:
            raise
        except _RAW as error:
            kind = next((kind for raw, kind in _KINDS.items() if isinstance(error, raw)), EdBatchError)
            raise kind(f"{name}: {_reason(error)}") from error

    return guard


def _reason(error: Exception) -> str:
    if isinstance(error, AttributeError):
        what = "an expression" if error.name in ("spec", "graph") else f"something that has {error.name!r}"
        return f"expected {what}, got {shown(error.obj)}"
    return str(error)


def guard(names: dict[str, Any]) -> None:
    """Guard the functions of this package that a module names, and the methods of its classes."""
    for name, found in list(names.items()):
        if name.startswith("_") or not getattr(found, "__module__", "").startswith("edbatch.dynet"):
            continue
        if isinstance(found, FunctionType):
            names[name] = guarded(found, found.__name__)
            names[name].__module__, names[name].__qualname__ = "edbatch.dynet", name  # where pickles look for it
        elif isinstance(found, type) and not issubclass(found, Exception):
            _guard_methods(found)


def _guard_methods(kind: type) -> None:
    for base in kind.__mro__:
        if not base.__module__.startswith("edbatch.dynet"):
            continue
        for name, found in list(vars(base).items()):
            is_public = not name.startswith("_") or name == "__init__"
            if is_public and isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
                setattr(base, name, guarded(found, name if name != "__init__" else base.__name__))
