"""Buffers that outlive a graph: fresh memory costs a page fault every 4 KiB, used memory costs nothing."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class BufferPool:
    """One-dimensional arrays, handed out and taken back; sizes are powers of two.

    Of those that are free the first in memory is handed out: equal graphs, one after the other, get the same buffers in
    the same places, in whatever order they give them back.

    Args:
        limit: bytes kept for reuse at most; what is released beyond that goes back to the system.
        empty: makes an array of a number of entries and a dtype.
        address: of an array's first entry.

    Example:
        >>> pool = BufferPool()
        >>> first = pool.acquire(1000, np.dtype("float32"))
        >>> pool.release(first)
        >>> pool.acquire(900, np.dtype("float32")) is first
        True
    """

    def __init__(
        self,
        limit: int = 1 << 30,
        empty: Callable[[int, np.dtype], Any] = np.empty,
        address: Callable[[Any], int] = lambda array: array.__array_interface__["data"][0],
    ) -> None:
        self._limit = limit
        self._empty = empty
        self.address = address
        self._kept = 0
        self._free: dict[tuple[int, np.dtype], list[tuple[int, Any]]] = {}  # heaps, by address
        # One that its thread may take again: the garbage collector, at work inside, may end a graph, which gives back.
        self._lock = threading.RLock()

    def acquire(self, entries: int, dtype: np.dtype) -> Any:
        """An array of at least `entries` entries with unspecified contents."""
        size = 1 << max(10, (entries - 1).bit_length())
        with self._lock:
            free = self._free.get((size, dtype))
            if free:
                self._kept -= size * dtype.itemsize
                return heapq.heappop(free)[1]
        return self._empty(size, dtype)

    def release(self, buffer: Any) -> None:
        """Take back an array from `acquire`; nobody may use it any more."""
        with self._lock:
            if self._kept + buffer.nbytes <= self._limit:
                self._kept += buffer.nbytes
                free = self._free.setdefault((len(buffer), buffer.dtype), [])
                heapq.heappush(free, (self.address(buffer), buffer))


_pools: dict[Any, BufferPool] = {}


def pool_of(backend: Any) -> BufferPool:
    """The one pool of a backend, of which it takes `empty_flat` and `address`."""
    if backend not in _pools:
        _pools[backend] = BufferPool(empty=backend.empty_flat, address=backend.address)
    return _pools[backend]
