"""Cells of one function that are made, called a few times and thrown away, where one cell would do."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from edbatch.base.repetition import goes_on
from edbatch.errors import warn

#: How many cells of one function may be thrown away until it is said: folds of a validation may have some cells each.
MANY = 250


class Made:
    """The cells of one function that were traced: those that live, and how many there were in all."""

    def __init__(self) -> None:
        self.alive: WeakSet[Any] = WeakSet()
        self.count = 0


_made: WeakKeyDictionary[CodeType, Made] = WeakKeyDictionary()


def note_cell(cell: Any, name: str, function: Callable[..., Any]) -> None:
    """Count a cell that has been traced; one of many of this function that are no more warns.

    A decorator or `eb.cell(...)` inside the function that computes a loss makes a cell for every mini-batch, which
    is traced each time. Many that live together, as one for each layer, are as they should be.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return
    made = _made.setdefault(code, Made())
    if cell in made.alive:
        return
    made.alive.add(cell)
    made.count += 1
    gone = made.count - len(made.alive)
    if gone >= MANY and goes_on(code):
        warn(
            f"cell {name} has been made and traced {made.count} times, and {gone} of these are no more. Each time "
            "costs more than a hundred calls; make the cell once, outside of the loop or of the function that is "
            "called again and again, and pass what changes as arguments"
        )
