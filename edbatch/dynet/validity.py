"""Expressions that are computed at once and checked, of `renew_cg(immediate_compute=True, check_validity=True)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.dynet.expression import BatchedExpression, Expression, SettableExpression
from edbatch.dynet.implicit import DynetError


class _Checked:
    """What is computed when it is made, and refused if it is not finite, then and in every read."""

    __slots__ = ()

    def __post_init__(self) -> None:
        self._array(False)

    def _array(self: Any, recalculate: bool) -> Any:
        found = super()._array(recalculate)  # type: ignore[misc]
        if not np.isfinite(found).all():
            raise DynetError(f"NaN or Inf detected in a value of dimension {self.dim()}")
        return found


class CheckedExpression(_Checked, Expression, gc=False, eq=False):
    """An expression that is checked.

    Example:
        >>> from edbatch import dynet as dy
        >>> ignored = dy.renew_cg(immediate_compute=True, check_validity=True)
        >>> dy.log(dy.inputVector([-1]))
        Traceback (most recent call last):
        edbatch.dynet.implicit.DynetError: NaN or Inf detected in a value of dimension ((1,), 1)
        >>> dy.close_cg()
    """


class CheckedBatch(_Checked, BatchedExpression, gc=False, eq=False):
    """A mini-batch that is checked."""


class CheckedInput(_Checked, SettableExpression, gc=False, eq=False):
    """An input that is checked, and may be set."""


CheckedExpression.of_arrays, CheckedExpression.of_inputs = CheckedBatch, CheckedInput
