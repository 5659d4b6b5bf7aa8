"""A table that grows: what compiled loops read of many programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class GrowingTable:
    """Records one after the other, with room for more: those that are there lie where they lay.

    Args:
        dtype: of the records.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self._memory = np.zeros(0, np.uint8)
        self._dtype, self._n = dtype, 0

    def __len__(self) -> int:
        return self._n

    @property
    def entries(self) -> np.ndarray:
        """Those in use."""
        return np.frombuffer(self._memory, self._dtype, self._n) if self._n else np.zeros(0, self._dtype)

    def append(self, more: Sequence[np.ndarray]) -> None:
        """Append records of the same dtype, as bytes: NumPy would compare the fields first."""
        size, new = self._dtype.itemsize, b"".join([some.tobytes() for some in more])
        begin, end = self._n * size, self._n * size + len(new)
        if end > len(self._memory):
            grown = np.zeros(max(end, 2 * len(self._memory)), np.uint8)
            grown[:begin] = self._memory[:begin]
            self._memory = grown
        if new:
            self._memory[begin:end] = np.frombuffer(new, np.uint8)
        self._n = end // size  # last: an interrupt may come at any time
