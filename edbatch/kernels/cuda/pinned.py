"""Copies to a GPU by way of pinned memory, without ever waiting for one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

#: Larger arrays go over piece by piece, so that a large one needs a few buffers, not one of its size.
LARGEST = 16 << 20
SMALLEST = 4 << 10


class Buffer(NamedTuple):
    """Pinned bytes [size], their address, and an event that is recorded after the last copy from them."""

    memory: np.ndarray
    address: int
    event: Any


class Uploads:
    """Copies from the host in the order of one stream's work; buffers are used again once their copies are done.

    Buffers have powers of two as sizes. The oldest copy of a size is done first: if it is not yet, there is no free
    buffer, and another one is allocated.

    Args:
        stream: what events are recorded on.
        allocate: from a number of bytes to that many pinned ones, uint8.
        event: makes an event, which can be recorded on a stream, and is `done` when all has that was enqueued before.
        copy: (to the device's address, from the host's, bytes) enqueues a copy.
    """

    def __init__(
        self,
        stream: Any,
        allocate: Callable[[int], np.ndarray],
        event: Callable[[], Any],
        copy: Callable[[int, int, int], None],
    ):
        self._stream, self._allocate, self._event, self._copy = stream, allocate, event, copy
        self._buffers: dict[int, deque[Buffer]] = defaultdict(deque)  # of each size, in the order of their copies

    def send(self, host: np.ndarray, target: int) -> None:
        """Enqueue a copy of an array's entries, row by row, to a device address; the array is free at once."""
        source = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        for begin in range(0, source.size, LARGEST):
            piece = source[begin : begin + LARGEST]
            size = max(SMALLEST, 1 << (piece.size - 1).bit_length())
            buffer = self._free(size)
            buffer.memory[: piece.size] = piece
            self._copy(target + begin, buffer.address, piece.size)
            buffer.event.record(self._stream)
            self._buffers[size].append(buffer)

    def _free(self, size: int) -> Buffer:
        buffers = self._buffers[size]
        with suppress(IndexError):  # there is none
            buffer = buffers.popleft()  # first taken, then looked at: another thread may want it too
            if buffer.event.done:
                return buffer
            buffers.appendleft(buffer)
        memory = self._allocate(size)
        return Buffer(memory, memory.ctypes.data, self._event())
