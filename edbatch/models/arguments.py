"""Checking what models are made of, before anything is added to a collection."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.base.numbers import check_integer, is_real
from edbatch.errors import shown


def check_model(place: str, model: Any, **sizes: Any) -> None:
    """Raise an `EdBatchError` unless it is a collection of parameters, and all sizes are positive integers."""
    if not isinstance(model, eb.ParameterCollection):
        raise eb.EdBatchError(f"{place}: expected a ParameterCollection as the model, got {shown(model)}")
    for name, size in sizes.items():
        check_integer(place, name, size)


def checked_rate(rate: float, what: str) -> float:
    """A rate of dropout.

    Raises:
        EdBatchError: it is no number in [0, 1).
    """
    if not is_real(rate) or not 0 <= rate < 1:
        raise eb.EdBatchError(f"{what}: expected a rate in [0, 1), got {shown(rate)}")
    return float(rate)
