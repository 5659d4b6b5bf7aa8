"""Cells of one function that are made, called a few times and thrown away, where one cell would do."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from edbatch.errors import goes_on, warn

#: How many cells of one function may be thrown away until it is said: folds of a validation may have some cells each.
MANY = 250


#: By function, the cells that were traced: those that live, and how many there were in all.
_made: WeakKeyDictionary[CodeType, tuple[WeakSet[Any], int]] = WeakKeyDictionary()


def note_cell(cell: Any, name: str, function: Callable[..., Any]) -> None:
    """Count a cell that has been traced; one of many of this function that are no more warns.

    A decorator inside of the function that computes a loss makes a cell for every mini-batch. Many that live together,
    as one for each layer, are as they should be.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return
    alive, count = _made.get(code, (WeakSet(), 0))
    if cell in alive:
        return
    alive.add(cell)
    _made[code] = alive, count + 1
    gone = count + 1 - len(alive)
    if gone >= MANY and goes_on(code):
        warn(
            f"cell {name} has been made and traced {count + 1} times, and {gone} of these are no more. Each time "
            "costs more than a hundred calls; make the cell once, outside of the loop or of the function that is "
            "called again and again, and pass what changes as arguments"
        )
