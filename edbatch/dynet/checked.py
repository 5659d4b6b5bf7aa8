"""Integers and shapes as DyNet takes them, and tables of functions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import Any

import numpy as np

from edbatch.dynet.implicit import DynetTypeError
from edbatch.errors import EdBatchError, shown


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
    """Integers from 0 on."""
    return [integer(place, value) for value in values]


def sizes(place: str, shape: Any) -> tuple[int, ...]:
    """A shape, which may be a single integer."""
    return tuple(integer(place, size, 1) for size in ([shape] if np.ndim(shape) == 0 else shape))


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
