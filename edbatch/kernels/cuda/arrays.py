"""Arrays of a GPU: from the host, to the host, and where they are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from edbatch.compiling.directory import Told
from edbatch.kernels.backend import Lists, Order
from edbatch.kernels.cuda.driver import Driver
from edbatch.kernels.cuda.indices import BYTES, IndexLists
from edbatch.memory.plan.format import Plan


class CudaArrays:
    """That part of a backend (see `kernels.backend`).

    Args:
        driver: of the GPU.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lists = IndexLists(driver)

    def empty(self, entries: int, dtype: np.dtype) -> Any:
        """See `Backend`."""
        return self._driver.empty(entries, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype, order: Order = "C") -> Any:
        """See `Backend`."""
        return self._driver.xp.zeros(shape, dtype, order)

    def address(self, array: Any) -> int:
        """See `Backend`."""
        return self._driver.address(array)

    def from_host(self, array: Any, order: Order = "C") -> Any:
        """A copy; what is on the device already is taken as it is."""
        if not isinstance(array, np.ndarray):
            return array
        with self.active():
            if order == "F":
                return self.from_host(array.T).T
            flat = self._driver.empty(max(1, array.size), array.dtype)[: array.size]
            if array.size:
                self._driver.upload(np.ascontiguousarray(array).reshape(-1), flat)
            return flat.reshape(array.shape)

    def to_host(self, array: Any) -> np.ndarray:
        """A copy."""
        with self.active():
            return self._driver.download(array)

    def stage(self, out: Any, values: list[np.ndarray]) -> None:
        """See `Backend`."""
        self._driver.upload(np.stack(values, dtype=out.dtype), out)

    def lists(self, plan: Told[Plan], integers: np.ndarray, first: int = 0, first_integer: int = 0) -> Lists:
        """See `Backend`; both are uploaded at once."""
        indices = plan.tables.indices[first:]
        held = self._lists.upload_plan(np.concatenate([indices, integers]))
        begin = held.at(len(indices))
        return Lists(held.at(0) - BYTES * first, begin - BYTES * first_integer, held)

    def active(self) -> AbstractContextManager[Any]:
        """See `Backend`."""
        return self._driver.active()

    def synchronize(self) -> None:
        """See `Backend`."""
        self._driver.synchronize()
