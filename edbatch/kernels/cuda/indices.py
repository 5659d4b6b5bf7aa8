"""Lists of integers on the device: rows of operands, payloads, where lists begin."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any
from weakref import finalize

import numpy as np

from edbatch.kernels.cuda.driver import Driver

BYTES = 4


class Indices:
    """A list of integers on the device.

    Args:
        device: int32 [n].
        address: of the first.
    """

    def __init__(self, device: Any, address: int) -> None:
        self.device = device
        self.address = address

    def at(self, position: int) -> int:
        """The address of an entry; of none for a negative position."""
        return 0 if position < 0 else self.address + BYTES * position


class IndexLists:
    """Uploads lists.

    Args:
        driver: of the GPU.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._buffers: dict[int, list[tuple[int, Any]]] = {}  # of plans, free ones: heaps by address

    def upload(self, host: np.ndarray) -> Indices:
        """A list in memory of its own."""
        host = np.ascontiguousarray(host, np.int32)
        return self._uploaded(host, self._driver.empty(max(1, len(host)), host.dtype))

    def upload_plan(self, host: np.ndarray) -> Indices:
        """The index buffer of a plan: slices of it may not outlive it.

        Its memory is used again, so that a mini-batch that comes again has its lists where its recording reads them.
        """
        size = 1 << max(6, len(host).bit_length())
        free = self._buffers.setdefault(size, [])
        try:
            _, buffer = heappop(free)
        except IndexError:  # none is free
            buffer = self._driver.empty(size, np.dtype(np.int32))
        found = self._uploaded(np.ascontiguousarray(host, np.int32), buffer)
        finalize(found, heappush, free, (found.address, buffer))
        return found

    def _uploaded(self, host: np.ndarray, buffer: Any) -> Indices:
        device = buffer[: len(host)]
        if len(host):
            self._driver.upload(host, device)
        return Indices(device, self._driver.address(buffer))
