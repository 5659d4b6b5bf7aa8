"""Boxes of numbers, which DyNet's programs rarely make themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import Any


def _unsigned(x: Any) -> int:
    if (found := index(x)) < 0:
        raise OverflowError("can't convert negative value to unsigned int")
    return found


class _Number:
    """A number that may be set anew."""

    entry: Callable[[Any], Any]

    def __init__(self, val: Any = 0) -> None:
        self.set(val)

    def set(self, newval: Any) -> None:
        """Another number."""
        self._val = self.entry(newval)

    def get(self) -> Any:
        """The number."""
        return self._val


class _Numbers:
    """Numbers that may be set anew."""

    entry: Callable[[Any], Any]

    def __init__(self, vals: Iterable[Any] = ()) -> None:
        self.set(vals)

    def set(self, newval: Iterable[Any]) -> None:
        """Other numbers, as many as one likes."""
        self._vals = [self.entry(x) for x in newval]

    def get(self) -> list[Any]:
        """The numbers, in a list of the caller's own."""
        return list(self._vals)

    def size(self) -> int:
        """How many there are."""
        return len(self._vals)


class FloatValue(_Number):
    """A number."""

    entry = float


class UnsignedValue(_Number):
    """An integer from 0 on."""

    entry = staticmethod(_unsigned)


class FloatVectorValue(_Numbers):
    """Numbers."""

    entry = float


class UnsignedVectorValue(_Numbers):
    """Integers from 0 on."""

    entry = staticmethod(_unsigned)
