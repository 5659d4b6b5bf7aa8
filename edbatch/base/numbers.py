"""What counts as a number, and checks of the numbers that callers give."""

from __future__ import annotations

import math
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, shown

MOST = 2**63 - 1  # that machines count with
_SCALARS = (int, float, np.integer, np.floating, np.bool_)


def is_real(value: Any) -> bool:
    """Return whether a value is one real number: truth values are, as 0 and 1; durations are none."""
    return isinstance(value, _SCALARS) and not isinstance(value, np.timedelta64)


def as_integer(value: Any) -> int:
    """Return `operator.index` as a plain int; a TypeError for truth values too: they come from comparisons."""
    if isinstance(value, bool):
        raise TypeError
    found = index(value)
    return found if found.__class__ is int else int(found)


def checked_real(place: str, name: str, value: Any, below: float = math.inf) -> float:
    """Return a number in [0, below) as a Python float: of NumPy's, fractions and arrays without axes too.

    Raises:
        EdBatchError: it is no number, a truth value, or out of range.
    """
    if value.__class__ is float:
        found = value
    else:
        found = math.nan
        one = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
        if isinstance(one, Real) and not isinstance(one, bool | np.timedelta64):
            try:
                found = float(one)
            except OverflowError:  # an integer beyond all floats
                found = math.inf
    if not 0 <= found < below:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected a number in [0, {below})")
    return found


def checked_integer(place: str, name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Return an integer from `least` to `most` as a Python int: of NumPy's, and whatever else `operator.index` takes.

    Raises:
        EdBatchError: it is no integer, a truth value, or out of range.
    """
    try:
        found = as_integer(value)
    except TypeError:
        found = least - 1
    if found > most:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected an integer of at most {most:,}")
    if found < least:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected an integer of at least {least}")
    return found
