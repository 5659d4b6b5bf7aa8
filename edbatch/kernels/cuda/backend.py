"""The GPU backend: kernels of ours and cuBLAS for what is common, CuPy's functions for the rest."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from edbatch.kernels.cuda.driver import Driver
from edbatch.kernels.cuda.indices import Indices
from edbatch.kernels.cuda.loops import CudaLoops

#: Bytes of scratch memory that a block of calls may take.
SCRATCH_BYTES = 256 << 20


def open_backend(number: int) -> CudaBackend:
    """The backend of the GPU with this number.

    Raises:
        EdBatchError: there is no such GPU, or no CuPy; says how to install it.
    """
    from edbatch.kernels.cuda.cupy_driver import open_driver

    return CudaBackend(open_driver(number))


class CudaBackend:
    """What the runtime asks of a GPU; as `NumPyBackend`, on arrays of the device.

    Args:
        driver: of the GPU.

    Attributes:
        loops: what enqueues kernels.
    """

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self._driver = driver
        self._xp = driver.xp
        with driver.active():
            self.loops = CudaLoops(driver)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)

    def address(self, array: Any) -> int:
        """Where an array's entries begin."""
        return self._driver.address(array)

    def empty_flat(self, entries: int, dtype: np.dtype) -> Any:
        """An array [entries] with unspecified contents."""
        return self._driver.empty(entries, dtype)

    def from_host(self, array: Any, order: Any) -> Any:
        """The device's array of a host's, stored by rows (order "C") or by columns ("F")."""
        if not isinstance(array, np.ndarray):
            return array
        with self.active():
            if order == "F":
                return self.from_host(array.T, "C").T
            flat = self._driver.empty(max(1, array.size), array.dtype)[: array.size]
            if array.size:
                self._driver.upload(np.ascontiguousarray(array).reshape(-1), flat)
            return flat.reshape(array.shape)

    def to_host(self, array: Any) -> np.ndarray:
        """A copy of a device's array on the host."""
        with self.active():
            return self._driver.download(array)

    def rows_to_host(self, array: Any, rows: np.ndarray) -> np.ndarray:
        """Some rows [k, *shape] of an array on the host."""
        first, n = int(rows[0]), len(rows)
        with self.active():
            if (rows == np.arange(first, first + n)).all():
                return self._driver.download(array[first : first + n])
            return self._driver.download(array[self.indices(rows)[:]])

    def indices(self, host: np.ndarray) -> Indices:
        """A list of rows as loops and functions of the device take it; its slices are arrays of the device."""
        return self.loops.upload(host)

    def plan_indices(self, host: np.ndarray) -> Indices:
        """`indices` for a plan's index buffer; slices of it may not outlive it."""
        return self.loops.upload_plan(host)

    @staticmethod
    def calls_at_once(least: int, cached: int, width: int) -> int:
        """How many calls of a program to compute at a time, at most: as many as there is memory for."""
        return max(1024, SCRATCH_BYTES // width)

    def configure(self, record: bool, precision: str) -> None:
        """See `graph.options.Options`; holds for what this thread enqueues from now on."""
        self.loops.configure(record, precision)

    def active(self) -> AbstractContextManager[Any]:
        """In its block, functions of this backend run on its device."""
        return self._driver.active()

    def computing(self) -> AbstractContextManager[Any]:
        """The same for a run."""
        return self.active()

    def synchronize(self) -> None:
        """Wait until everything that was enqueued is done."""
        self._driver.synchronize()

    def stage(self, out: Any, values: list[Any]) -> None:
        """Copy one given array into each row."""
        self._driver.upload(np.stack(values), out)

    @staticmethod
    def copy(out: Any, values: Any) -> None:
        """Copy a given array into every row."""
        out[...] = values

    @staticmethod
    def fill(out: Any, value: float) -> None:
        """Fill with a number."""
        out.fill(value)
