"""Arrays of a GPU: from the host, to the host, and where they are."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from edbatch.compiling.array_table import HasTables
from edbatch.kernels.backend import Lists, Order
from edbatch.kernels.tables import INTEGER_BYTES
from edbatch.memory.plan.format import Plan

if TYPE_CHECKING:
    from edbatch.kernels.cuda.cupy_driver import CuPyDriver


class CudaArrays:
    """That part of a backend (see `kernels.backend`).

    Args:
        driver: of the GPU.
    """

    def __init__(self, driver: CuPyDriver) -> None:
        self._driver = driver
        self.address, self.array_at, self.to_host = driver.address, driver.array_at, driver.download
        self._free: dict[int, list[tuple[int, Any]]] = {}  # buffers of lists, by size: heaps by address

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, order: Order = "C", zeros: bool = True) -> Any:
        return self._driver.xp.zeros(shape, dtype, order) if zeros else self._driver.empty(shape, dtype)

    def shared(self, array: Any) -> Any:
        xp = self._driver.xp
        return array if isinstance(array, xp.ndarray) else xp.from_dlpack(array)

    def from_host(self, array: Any, order: Order = "C", out: Any = None) -> Any:
        """A copy; what is on the device already is taken as it is."""
        if out is not None:
            self._driver.upload(np.stack(array, dtype=out.dtype), out)
            return out
        if isinstance(array, self._driver.xp.ndarray):
            return array
        with self._driver.active():
            if order == "F":
                return self.from_host(array.T).T
            flat = self._driver.empty(max(1, array.size), array.dtype)[: array.size]
            if array.size:
                self._driver.upload(np.ascontiguousarray(array).reshape(-1), flat)
            return flat.reshape(array.shape)

    def lists(self, plan: HasTables[Plan], integers: np.ndarray, first: int = 0, first_integer: int = 0) -> Lists:
        """See `Backend`; both are uploaded at once."""
        indices = plan.tables.indices[first:]
        address, held = self._upload_list(np.concatenate([indices, integers]))
        begin = address + INTEGER_BYTES * len(indices)
        return Lists(address - INTEGER_BYTES * first, begin - INTEGER_BYTES * first_integer, held)

    def _upload_list(self, host: np.ndarray) -> tuple[int, Any]:
        """The address of a list of integers on the device, and what has to live as long.

        Its memory is used again, so that a mini-batch that comes again has its lists where its recording reads them.
        """
        host = np.ascontiguousarray(host, np.int32)
        size = 1 << max(6, len(host).bit_length())
        free = self._free.setdefault(size, [])
        try:
            address, buffer = heappop(free)
        except IndexError:  # none is free
            buffer = self._driver.empty(size, np.dtype(np.int32))
            address = self._driver.address(buffer)
        held = buffer[: len(host)]
        finalize(held, heappush, free, (address, buffer))
        if len(host):
            self._driver.upload(host, held)
        return address, held
