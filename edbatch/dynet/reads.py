"""From an array to what DyNet's programs read: numbers, lists by columns, arrays of float64 with the batch last."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.dynet.arithmetic import dim_of
from edbatch.dynet.implicit import DynetError


class Tensor:
    """A value that is read whole, by `expression.tensor_value()`.

    Args:
        array: with the entries of a mini-batch along the last axis, if there are several.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def as_numpy(self) -> np.ndarray:
        """The value."""
        return self._array

    def argmax(self, dim: int = 0, num: int = 1) -> Tensor:
        """The numbers of the `num` largest entries along an axis, the largest first."""
        return Tensor(np.argsort(-self._array, dim, kind="stable").take(range(num), dim))


class Reads:
    """What DyNet's programs read of expressions and parameters, of the array that `_array` gives."""

    __slots__ = ()

    def _array(self, recalculate: bool) -> Any:
        """The value; entries of a mini-batch along the first axis."""
        raise NotImplementedError

    def _count(self) -> int:
        """How many entries the mini-batch has."""
        return 1

    def npvalue(self, recalculate: bool = False) -> np.ndarray:
        """The value as an array; the entries of a mini-batch, if there are several, along the last axis."""
        return np_value(self._array(recalculate), self._count())

    def vec_value(self, recalculate: bool = False) -> list[float]:
        """All entries of the value in a list, column by column."""
        return Reads.npvalue(self, recalculate).reshape(-1, order="F").tolist()

    def scalar_value(self, recalculate: bool = False) -> float:
        """The only entry of the value."""
        found = np.asarray(self._array(recalculate))
        if found.size != 1:
            raise DynetError(f"scalar_value: Input tensor has more than one element, it has {found.size}")
        return float(found.item())

    def value(self, recalculate: bool = False) -> Any:
        """The value: a number, a list of numbers if it has one axis, an array if it has more."""
        found = np.asarray(self._array(recalculate))
        if found.ndim - (self._count() > 1) > 1:
            return np_value(found, self._count())
        return (
            float(found.item()) if found.size == 1 else np_value(found, self._count()).reshape(-1, order="F").tolist()
        )

    def tensor_value(self, recalculate: bool = False) -> Tensor:
        """The value as a tensor, which knows `argmax`."""
        return Tensor(self.npvalue(recalculate))

    def forward(self, recalculate: bool = False) -> None:
        """Compute the value; reading it does, too."""
        self._array(recalculate)


def np_value(array: Any, count: int) -> np.ndarray:
    """An array of DyNet's dimensions; `count` entries of a mini-batch become the last axis."""
    found = np.asarray(array, np.float64)
    if count == 1:
        return np.array(found.reshape(dim_of(found.shape)), order="F")
    return np.array(np.moveaxis(found.reshape(count, *dim_of(found.shape[1:])), 0, -1), order="F")
