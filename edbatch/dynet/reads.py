"""From an array to what DyNet's programs read: numbers, lists by columns, arrays of float64 with the batch last."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.dynet.implicit import DynetError


def dim_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """DyNet's dimensions: a number has one entry.

    Example:
        >>> dim_of(()), dim_of((2, 3))
        ((1,), (2, 3))
    """
    return tuple(shape) or (1,)


def np_value(array: Any, count: int) -> np.ndarray:
    """An array of DyNet's dimensions; `count` entries of a mini-batch become the last axis."""
    found = np.asarray(array, np.float64)
    if count == 1:
        return np.array(found.reshape(dim_of(found.shape)), order="F")
    return np.array(np.moveaxis(found.reshape(count, *dim_of(found.shape[1:])), 0, -1), order="F")


def vec_value(array: Any, count: int) -> list[float]:
    """All entries, column by column, one entry of the mini-batch after the other."""
    found: list[float] = np_value(array, count).reshape(-1, order="F").tolist()
    return found


def scalar_value(array: Any) -> float:
    """The only entry."""
    found = np.asarray(array)
    if found.size != 1:
        raise DynetError(f"scalar_value: Input tensor has more than one element, it has {found.size}")
    return float(found.reshape(-1)[0])


def value_of(array: Any, count: int) -> Any:
    """A number, a list or an array, by how many axes there are."""
    found = np.asarray(array)
    axes = found.ndim - (count > 1)
    if axes > 1:
        return np_value(array, count)
    return scalar_value(array) if found.size == 1 else vec_value(array, count)


class Tensor:
    """A value that is read whole, by `expression.tensor_value()`.

    Args:
        array: with the entries of a mini-batch along the last axis, if there are several.
        count: how many there are.
    """

    def __init__(self, array: np.ndarray, count: int = 1) -> None:
        self._array, self._count = array, count

    def as_numpy(self) -> np.ndarray:
        """The value."""
        return self._array

    def argmax(self, dim: int = 0, num: int = 1) -> Tensor:
        """The numbers of the `num` largest entries along an axis."""
        return self.topk(dim, num)[1] if num > 1 else self._of(np.argmax(self._array, dim), dim)

    def topk(self, dim: int = 0, num: int = 1) -> tuple[Tensor, Tensor]:
        """The largest entries along an axis, the largest first, and their numbers."""
        order = np.argsort(-self._array, dim, kind="stable").take(range(num), dim)
        return Tensor(np.take_along_axis(self._array, order, dim), self._count), Tensor(order, self._count)

    def categorical_sample_log_prob(self, dim: int = 0, num: int = 1) -> Tensor:
        """Numbers drawn along an axis with the probabilities whose logarithms these are."""
        from edbatch.dynet.draws import generator

        drawn = [np.argmax(self._array + generator().gumbel(size=self._array.shape), dim) for _ in range(num)]
        return Tensor(np.stack(drawn, dim), self._count)

    def _of(self, numbers: np.ndarray, dim: int) -> Tensor:
        return Tensor(np.expand_dims(numbers, dim), self._count)
