"""A buffer that stays where it is used: to take one from a pool, and give it back, costs as much as a small loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.memory.plan.pool import BufferPool

MOST_BYTES = 1 << 22  # that are kept; more goes back to the pool as soon as it can


class KeptBuffer:
    """A buffer, taken from a pool when it is first needed, or a larger one, or one of another dtype.

    Args:
        pool: where it comes from and goes to.

    Example:
        >>> buffer = KeptBuffer(BufferPool())
        >>> address, array = buffer.take(1000, np.dtype("float32"))
        >>> buffer.take(900, np.dtype("float32")) == (address, array)
        True
    """

    __slots__ = ("_address", "_array", "_pool")

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._array: Any = None
        self._address = 0

    def take(self, entries: int, dtype: np.dtype) -> tuple[int, Any]:
        """At least so many entries, with unspecified contents, and their address; who took them before has none."""
        if self._array is None or len(self._array) < entries or self._array.dtype != dtype:
            self.give_back()
            array = self._pool.acquire(entries, dtype)
            self._address, self._array = self._pool.address(array), array
        return self._address, self._array

    def give_back(self) -> None:
        """Let others have it."""
        if self._array is not None:
            array, self._array = self._array, None
            self._pool.release(array)

    def shrink(self) -> None:
        """Let others have it if it is large."""
        if self._array is not None and self._array.nbytes > MOST_BYTES:
            self.give_back()
