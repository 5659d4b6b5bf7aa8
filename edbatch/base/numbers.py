"""What counts as a number."""

from __future__ import annotations

from typing import Any

import numpy as np

_SCALARS = (int, float, np.integer, np.floating)


def is_real(value: Any) -> bool:
    """Whether a value is one real number: durations are none, though NumPy has them among its integers.

    Example:
        >>> [is_real(value) for value in (1, 0.5, np.float32(2), 1j, "1", np.timedelta64(1))]
        [True, True, True, False, False, False]
    """
    return isinstance(value, _SCALARS) and not isinstance(value, np.timedelta64)
