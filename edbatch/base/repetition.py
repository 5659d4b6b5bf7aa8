"""What is harmless now and then, and worth a warning when it goes on and on."""

from __future__ import annotations

from collections.abc import Hashable

_values: dict[Hashable, set[Hashable]] = {}


def goes_on(what: Hashable, value: Hashable = None, many: int = 1) -> bool:
    """Count a value of something; True once in a process: when it has had so many different ones.

    Example:
        >>> [goes_on("rate", value, many=2) for value in (0.1, 0.1, 0.2, 0.3)]
        [False, False, True, False]
    """
    known = _values.setdefault(what, set())
    if len(known) >= many:
        return False
    known.add(value)
    return len(known) == many


def forget() -> None:
    """Begin to count anew."""
    _values.clear()
