"""Checking what models are made of, before anything is added to a collection."""

from __future__ import annotations

from operator import index
from typing import Any

import edbatch as eb
from edbatch.errors import shown


def check_model(place: str, model: Any, **sizes: Any) -> None:
    """Raise an `EdBatchError` unless it is a collection of parameters, and all sizes are positive integers.

    Example:
        >>> check_model("LSTM", eb.ParameterCollection(), input_dim=3, dim=0)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: LSTM: dim=0; expected an integer of at least 1
    """
    if not isinstance(model, eb.ParameterCollection):
        raise eb.EdBatchError(f"{place}: expected a ParameterCollection as the model, got {shown(model)}")
    check_integers(place, 1, **sizes)


def check_integers(place: str, least: int, **sizes: Any) -> None:
    """Raise an `EdBatchError` that names the first that is no integer, or below `least`; truth values are none."""
    for name, size in sizes.items():
        try:
            good = not isinstance(size, bool) and index(size) >= least
        except TypeError:
            good = False
        if not good:
            raise eb.EdBatchError(f"{place}: {name}={shown(size)}; expected an integer of at least {least}")


def checked_rate(rate: float, what: str) -> float:
    """A rate of dropout.

    Raises:
        EdBatchError: it is no number in [0, 1).
    """
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise eb.EdBatchError(f"{what}: expected a rate in [0, 1), got {shown(rate)}")
    return float(rate)
