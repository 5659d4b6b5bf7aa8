"""Functions of one number in the update rules that Numba compiles."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any

from edbatch.compiled import compiled


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def sqrt(x: Any) -> Any:
    """Square root; NaN below zero."""
    return math.sqrt(x)


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def maximum(a: Any, b: Any) -> Any:
    """The larger; NaN if one is."""
    return a if a >= b or a != a else b


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def minimum(a: Any, b: Any) -> Any:
    """The smaller; NaN if one is."""
    return a if a <= b or a != a else b
