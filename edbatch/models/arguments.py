"""Checks of a model's arguments, before anything is added to a collection."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.base.numbers import MOST, checked_integer, is_real
from edbatch.errors import shown

MOST_MADE = 100_000  # parts that are made one by one: more would take minutes, and are a slip of the pen
_MADE = ("experts", "layers")


def checked_sizes(place: str, model: Any, **sizes: Any) -> list[int]:
    """The sizes as Python ints, in order.

    Raises:
        EdBatchError: the model is no collection of parameters, or a size is no positive integer, or far too large.
    """
    if not isinstance(model, eb.ParameterCollection):
        raise eb.EdBatchError(f"{place}: expected a ParameterCollection as the model, got {shown(model)}")
    return [
        checked_integer(place, name, size, most=MOST_MADE if name in _MADE else MOST) for name, size in sizes.items()
    ]


def checked_rate(rate: float, what: str) -> float:
    """A rate of dropout; an EdBatchError where it is no number in [0, 1)."""
    if not is_real(rate) or not 0 <= rate < 1:
        raise eb.EdBatchError(f"{what}: expected a rate in [0, 1), got {shown(rate)}")
    return float(rate)
