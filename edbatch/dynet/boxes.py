"""Boxes of numbers, which DyNet's programs rarely make themselves."""

from __future__ import annotations

from collections.abc import Iterable


class FloatValue:
    """A number."""

    def __init__(self, val: float = 0.0) -> None:
        self._val = float(val)

    def set(self, newval: float) -> None:
        """Another number."""
        self._val = float(newval)

    def get(self) -> float:
        """The number."""
        return self._val


class UnsignedValue:
    """An integer from 0 on."""

    def __init__(self, val: int = 0) -> None:
        self._val = int(val)

    def set(self, newval: int) -> None:
        """Another integer."""
        self._val = int(newval)

    def get(self) -> int:
        """The integer."""
        return self._val


class FloatVectorValue:
    """Numbers."""

    def __init__(self, vals: Iterable[float] = ()) -> None:
        self._vals = [float(x) for x in vals]

    def set(self, newval: Iterable[float]) -> None:
        """Other numbers."""
        self._vals = [float(x) for x in newval]

    def get(self) -> list[float]:
        """The numbers."""
        return list(self._vals)

    def size(self) -> int:
        """How many there are."""
        return len(self._vals)


class UnsignedVectorValue:
    """Integers from 0 on."""

    def __init__(self, vals: Iterable[int] = ()) -> None:
        self._vals = [int(x) for x in vals]

    def set(self, newval: Iterable[int]) -> None:
        """Other integers."""
        self._vals = [int(x) for x in newval]

    def get(self) -> list[int]:
        """The integers."""
        return list(self._vals)

    def size(self) -> int:
        """How many there are."""
        return len(self._vals)
