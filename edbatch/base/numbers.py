"""What counts as a number, and checks of the numbers that callers give."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, shown

_SCALARS = (int, float, np.integer, np.floating)


def is_real(value: Any) -> bool:
    """Whether a value is one real number: durations are none, though NumPy has them among its integers.

    Example:
        >>> [is_real(value) for value in (1, 0.5, np.float32(2), 1j, "1", np.timedelta64(1))]
        [True, True, True, False, False, False]
    """
    return isinstance(value, _SCALARS) and not isinstance(value, np.timedelta64)


def as_integer(value: Any) -> int:
    """`operator.index` without truth values, which to Python are 0 and 1: whoever gives one has compared something.

    Raises:
        TypeError: it is no integer.
    """
    if isinstance(value, bool):
        raise TypeError
    return index(value)


def check_number(place: str, name: str, value: Any, below: float = math.inf) -> None:
    """Raise an `EdBatchError` unless `value` is a number in [0, below); truth values are none.

    Example:
        >>> check_number("SGD", "momentum", 1.5, below=1)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: SGD: momentum=1.5; expected a number in [0, 1)
    """
    try:
        good = is_real(value) and not isinstance(value, bool) and 0 <= float(value) < below
    except OverflowError:  # an integer beyond all floats
        good = False
    if not good:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected a number in [0, {below})")


def check_integer(place: str, name: str, value: Any, least: int = 1) -> None:
    """Raise an `EdBatchError` unless `value` is an integer of at least `least`; truth values are none.

    Example:
        >>> check_integer("LSTM", "dim", 0)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: LSTM: dim=0; expected an integer of at least 1
    """
    try:
        good = as_integer(value) >= least
    except TypeError:
        good = False
    if not good:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected an integer of at least {least}")
