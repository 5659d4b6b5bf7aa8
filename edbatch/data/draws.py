"""Random choices that are the same in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

_Item = TypeVar("_Item")


class Draws:
    """Choices by the fractions of a seeded generator: of `random.Random`, `random()` alone is promised to stay."""

    def __init__(self, seed: int) -> None:
        self.fraction = Random(seed).random

    def below(self, n: int) -> int:
        """One of 0, 1, ..., n - 1."""
        return int(n * self.fraction())

    def one_of(self, items: Sequence[_Item]) -> _Item:
        """One of the items."""
        return items[self.below(len(items))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.fraction() < probability
