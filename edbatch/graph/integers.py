"""Integers in the place of one: an index or a label for each entry of an array of expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, missing_memory

#: Entries of an array that Python goes through in less time than a function of NumPy is called.
FEW = 32
_MOST = 2**63


class Integers:
    """Several integers, which were checked to be such (see `is_integers`); one of more than 63 bits is an error.

    Attributes:
        values: the integers (int64).
        largest: of them, where a negative one counts as larger than all that are not; -1 if there is none.
    """

    __slots__ = ("count", "largest", "values")

    def __init__(self, given: np.ndarray) -> None:
        self.values = values = given.astype(np.int64)
        self.count = len(values)
        self.largest = values.view(np.uint64).max().item() if self.count else -1
        if self.largest >= _MOST and given.dtype.kind == "u":
            raise EdBatchError(f"an array of indices: {given.max()} is too large")

    def __repr__(self) -> str:
        return f"{self.count} integers"

    @property
    def has_negative(self) -> bool:
        """Whether one counts from the end."""
        return self.largest >= _MOST

    def used_in(self, size: int, place: str) -> Integers:
        """Indices below `size`, of which negative ones count from the end."""
        if self.largest < size:
            return self
        self._expect(-size, size, place, f"is out of range for {size} entries")
        return Integers(self.values % size)

    def used_as_label(self, classes: int, place: str) -> Integers:
        """Labels, none of them negative."""
        if self.largest >= classes:
            self._expect(0, classes, place, f"is no label, expected one in [0, {classes})")
        return self

    def _expect(self, first: int, end: int, place: str, what: str) -> None:
        wrong = (self.values < first) | (self.values >= end)
        if wrong.any():
            at = int(wrong.argmax())
            raise EdBatchError(f"{place}: the integer {self.values[at]} of entry {at} {what}")


def integers(x: Any) -> Any:
    """An array of integers as `Integers`, NumPy's integer as Python's; anything else as it is."""
    if isinstance(x, np.integer):
        return int(x)
    return Integers(x) if is_integers(x) else x


def is_integers(x: Any) -> bool:
    """Whether it is an array of integers, in a row; one of nothing is."""
    return x.__class__ is np.ndarray and x.ndim == 1 and (x.dtype.kind in "iu" or not x.size)


def counts_from_the_end(index: Any) -> bool:
    """Whether an index, or one of several, is negative."""
    return bool(index < 0) if isinstance(index, int | np.integer) else bool(index.has_negative)


def counted(place: Any, numbers: np.ndarray, size: int) -> np.ndarray:
    """Numbers of entries, which are checked; negative ones count from the end, what is returned from the beginning."""
    few = numbers.ravel().tolist() if numbers.size <= FEW else (numbers.min().item(), numbers.max().item())
    least = min(few)
    if least < -size or max(few) >= size:
        wrong = numbers[(numbers < -size) | (numbers >= size)]
        raise EdBatchError(f"{place}: index {wrong.flat[0]} is out of range for {size} entries")
    return numbers.astype(np.int64) % size if least < 0 else numbers  # 8 bits may not hold the size


def chosen_entries(place: Any, given: Any, size: int) -> np.ndarray:
    """The entries that a list of integers or of truth values names, of so many, checked, and `counted`."""
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty((), object)
    except MemoryError:
        raise missing_memory(str(place), given) from None
    if array.dtype == bool and array.shape == (size,):
        array = array.nonzero()[0]
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise EdBatchError(f"{place}: expected an integer, a slice, a list of integers, or of {size} truth values")
    return counted(place, array, size) if len(array) else array.astype(np.int64)
