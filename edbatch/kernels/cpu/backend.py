"""The CPU backend: NumPy's functions, and the few that NumPy lacks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, c_char
from functools import cached_property
from typing import Any

import numpy as np


def open_backend(number: int) -> NumPyBackend:
    """The backend of the device "cpu"."""
    return NumPyBackend()


class NumPyBackend:
    """What the runtime asks of a device: every NumPy function by its name, plus those defined here.

    Attributes:
        loops: compiled loops over rows, by address; see `kernels.cpu.loops`.
    """

    name = "cpu"

    @cached_property
    def loops(self) -> Any:
        """Imports Numba, which takes time: only who runs something pays."""
        from edbatch.kernels.cpu import loops as numpy_loops

        return numpy_loops

    @staticmethod
    def address(array: Any) -> int:
        """Where an array's entries begin."""
        if array.flags.carray and array.size:
            return addressof(c_char.from_buffer(array))  # takes half the time of `array.ctypes`
        address: int = array.ctypes.data
        return address

    @staticmethod
    def empty_flat(entries: int, dtype: np.dtype) -> Any:
        """An array [entries] with unspecified contents."""
        return np.empty(entries, dtype)

    @staticmethod
    def from_host(array: Any, order: Any) -> Any:
        """The device's array of a host's, stored by rows (order "C") or by columns ("F"). Here: no copy if need not."""
        return np.asarray(array, order=order)

    @staticmethod
    def to_host(array: Any) -> np.ndarray:
        """A device's array on the host; a copy or not. Waits until it is computed."""
        return array

    @staticmethod
    def rows_to_host(array: Any, rows: np.ndarray) -> np.ndarray:
        """Some rows [k, *shape] of an array, copied to the host; waits until they are computed."""
        return array[rows]

    @staticmethod
    def indices(host: np.ndarray) -> Any:
        """A list of rows as loops and functions of the device take it; of int32, its slices are arrays."""
        return host

    @staticmethod
    def plan_indices(host: np.ndarray) -> Any:
        """`indices` for a plan's index buffer; slices of it may not outlive it."""
        return host

    @staticmethod
    def calls_at_once(least: int, cached: int, width: int) -> int:
        """How many calls of a program to compute at a time, at most.

        Args:
            least: for products to be worth reordering their weights.
            cached: whose intermediates stay in a core's cache.
            width: bytes of an intermediate row, at least 1.
        """
        return max(least, cached)

    @staticmethod
    def configure(record: bool, precision: str) -> None:
        """Options of GPUs; here there is nothing to choose."""

    @staticmethod
    def active() -> AbstractContextManager[Any]:
        """In its block, functions of this backend run on its device."""
        return nullcontext()

    @staticmethod
    def computing() -> AbstractContextManager[Any]:
        """The same for a run, of which there is one at a time: BLAS computes it with one thread."""
        from edbatch.kernels.cpu.blas_threads import one_thread

        return one_thread()

    @staticmethod
    def synchronize() -> None:
        """Nothing to wait for: what has been called is done."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def stage(out: Any, values: list[Any]) -> None:
        """Copy one given array into each row."""
        np.stack(values, out=out)

    @staticmethod
    def copy(out: Any, values: Any) -> None:
        """Copy a given array into every row."""
        np.copyto(out, values)

    @staticmethod
    def fill(out: Any, value: float) -> None:
        """Fill with a number."""
        out.fill(value)
