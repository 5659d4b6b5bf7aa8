"""Buffers that outlive a graph: fresh memory costs a page fault every 4 KiB, used memory costs nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from edbatch.kernels.backend import Backend


class BufferPool:
    """One-dimensional arrays, handed out and taken back; sizes are powers of two.

    Of those that are free the first in memory is handed out: equal graphs, one after the other, get the same buffers in
    the same places, in whatever order they give them back.

    Args:
        limit: bytes kept for reuse at most; what is released beyond that goes back to the system.
        empty: makes an array of a number of entries and a dtype.
        address: of an array's first entry.
    """

    poisons = False  # fills what is free with NaN: see `edbatch.testing`

    def __init__(
        self,
        limit: int = 1 << 30,
        empty: Callable[[int, np.dtype], Any] = np.empty,
        address: Callable[[Any], int] = lambda array: array.__array_interface__["data"][0],
    ) -> None:
        self._limit = limit
        self._empty = empty
        self.address = address
        # Heaps, by address. Each is changed by single calls of C: no lock is held where the garbage collector, or an
        # interrupt, may come in between; and what is kept is counted, as a sum beside it would be wrong after one.
        self._free: dict[tuple[int, np.dtype], list[tuple[int, Any]]] = {}
        self._room = 0  # bytes that can be given back for sure before what is kept has to be counted again

    def acquire(self, entries: int, dtype: np.dtype) -> Any:
        """An array of at least `entries` entries with unspecified contents."""
        size = 1 << max(10, (entries - 1).bit_length())
        try:
            buffer = heapq.heappop(self._free[size, dtype])[1]
        except (KeyError, IndexError):  # none is free
            buffer = self._empty(size, dtype)
        if self.poisons:
            self.poison(buffer)
        return buffer

    def release(self, buffer: Any) -> None:
        """Take back an array from `acquire`; nobody may use it any more.

        Who gives back takes the array out of where it was held first: an interrupt between the two then loses a buffer
        (which goes back to the system), while the other way round it would be given back twice, and have two owners.
        """
        if self.poisons:
            self.poison(buffer)
        self._room -= buffer.nbytes  # before it is kept: an interrupt in between leaves less room than there is
        if self._room < 0:
            self._room = self._limit - self.kept - buffer.nbytes
        if self._room >= 0:
            heapq.heappush(self._free.setdefault((len(buffer), buffer.dtype), []), (self.address(buffer), buffer))

    def poison(self, buffer: Any) -> None:
        """Fill an array of numbers with NaN."""
        if buffer.dtype.kind == "f":
            buffer.fill(np.nan)

    @property
    def kept(self) -> int:
        """Bytes that are free."""
        return sum(size * dtype.itemsize * len(free) for (size, dtype), free in list(self._free.items()))


class KeptBuffer:
    """A buffer that stays where it is used: to take one from a pool, and give it back, costs as much as a small loop.

    It is taken when it is first needed, or a larger one, or one of another dtype.
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

    @property
    def bytes(self) -> int:
        """Of the buffer."""
        return 0 if self._array is None else self._array.nbytes


_pools: dict[Any, BufferPool] = {}


def pool_of(backend: Backend) -> BufferPool:
    """The one pool of a backend, of which it takes `allocate` and `address`."""
    found = _pools.get(backend)
    if found is None:
        found = _pools.setdefault(
            backend, BufferPool(empty=partial(backend.allocate, zeros=False), address=backend.address)
        )
    return found
