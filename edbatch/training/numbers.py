"""Checking hyper-parameters."""

from __future__ import annotations

import math
from typing import Any

from edbatch.base.numbers import is_real
from edbatch.errors import EdBatchError, shown


def check_number(place: str, name: str, value: Any, below: float = math.inf) -> None:
    """Raise an `EdBatchError` unless `value` is a number in [0, below).

    Example:
        >>> check_number("SGD", "momentum", 1.5, below=1)
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: SGD: momentum=1.5; expected a number in [0, 1)
    """
    if not is_real(value) or not 0 <= value < below:
        raise EdBatchError(f"{place}: {name}={shown(value)}; expected a number in [0, {below})")
