"""What arguments have to be, and errors in words where Python itself would complain about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from types import FunctionType
from typing import Any

import numpy as np

from edbatch.dynet.implicit import DynetError, DynetIndexError, DynetTypeError
from edbatch.errors import EdBatchError, shown
from edbatch.graph.recorder import CALLERS

_RAW = TypeError, ValueError, AttributeError, IndexError, KeyError, ZeroDivisionError, OverflowError


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
    if not hasattr(values, "__iter__"):
        raise DynetTypeError(f"{place}: expected a list of integers, got {shown(values)}")
    found = [integer(place, value) for value in values]
    if not found:
        raise EdBatchError(f"{place}: expected at least one integer, got none")
    return found


def sizes(place: str, shape: Any) -> tuple[int, ...]:
    """A shape, which may be a single integer."""
    return tuple(integer(place, size, 1) for size in ([shape] if np.ndim(shape) == 0 else shape))


def number(place: str, value: Any) -> float:
    """A real number."""
    try:
        return float(value + 0)  # no text
    except (TypeError, ValueError):
        raise DynetTypeError(f"{place}: expected a number, got {shown(value)}") from None


def within(place: str, value: Any, least: float, most: float = np.inf) -> float:
    """A real number of a range."""
    found = number(place, value)
    if not least <= found <= most:
        raise DynetError(f"{place}: expected a number from {least:g} to {most:g}, got {found:g}")
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
            reason = str(error)
            if isinstance(error, AttributeError):
                what = "an expression" if error.name in ("spec", "graph") else f"something that has {error.name!r}"
                reason = f"expected {what}, got {shown(error.obj)}"
            kinds: dict[type, type[EdBatchError]] = {TypeError: DynetTypeError, IndexError: DynetIndexError}
            raise kinds.get(type(error), EdBatchError)(f"{name}: {reason}") from error

    return guard


def guard(names: dict[str, Any]) -> None:
    """Guard the functions of this package that a module names, and the methods of its classes."""
    for name, found in list(names.items()):
        if name.startswith("_") or not getattr(found, "__module__", "").startswith("edbatch.dynet"):
            continue
        if isinstance(found, FunctionType) or isinstance(found, CALLERS):  # noqa: SIM101 (mypy)
            names[name] = guarded(found, found.__name__)
            names[name].__module__, names[name].__qualname__ = "edbatch.dynet", name  # where pickles look for it
        elif isinstance(found, type):
            for base in (kind for kind in found.__mro__ if kind.__module__.startswith("edbatch.dynet")):
                _guard_methods(base)


def _guard_methods(kind: type) -> None:
    for name, found in list(vars(kind).items()):
        is_public = not name.startswith("_") or name == "__init__"
        if is_public and isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
            setattr(kind, name, guarded(found, name if name != "__init__" else kind.__name__))


def named(*functions: Callable[..., Any], **table: tuple[Callable[..., Any], str]) -> dict[str, Callable[..., Any]]:
    """Functions by their names: some know theirs, others are given one, and a docstring.

    Example:
        >>> double = named(double=(lambda x: x + x, "2 x."))["double"]
        >>> double.__name__, double.__doc__, double(3)
        ('double', '2 x.', 6)
    """
    for name, (function, doc) in table.items():
        function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return {**{one.__name__: one for one in functions}, **{name: function for name, (function, _) in table.items()}}
