"""The CPU backend: NumPy's functions, and the few that NumPy lacks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, c_char
from functools import cached_property, partial
from typing import Any

import numpy as np

from edbatch.kernels.list_kernels import reduce_lists
from edbatch.kernels.random import uniform


def open_backend(number: int) -> NumPyBackend:
    """The backend of the device "cpu"."""
    return NumPyBackend()


class NumPyBackend:
    """What an op's `forward` computes with: every NumPy function by its name, plus those defined here.

    Attributes:
        loops: compiled loops over rows, by address; see `kernels.cpu.loops`.

    Example:
        >>> import numpy as np
        >>> k, out = NumPyBackend(), np.empty(2)
        >>> k.sigmoid(np.array([0.0, 100.0]), out)
        >>> out
        array([0.5, 1. ])
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
    def negative(x: Any, out: Any) -> Any:
        """out = -x. NumPy's own, from 2.2 on, is wrong where rows are 16 (float32) or 64 bytes apart."""
        return np.multiply(x, -1, out=out)

    @classmethod
    def sigmoid(cls, x: Any, out: Any) -> None:
        """out = 1 / (1 + e⁻ˣ), all of which NumPy vectorises (scipy's expit takes four times as long)."""
        with np.errstate(over="ignore"):  # 1 / infinity is 0
            np.exp(cls.negative(x, out=out), out=out)
        out += 1
        np.reciprocal(out, out=out)

    @staticmethod
    def erf(x: Any, out: Any) -> None:
        """out = erf(x)."""
        from scipy.special import erf  # 0.3 s to import: only who calls it pays

        erf(x, out=out)

    @staticmethod
    def erfc(x: Any, out: Any) -> None:
        """out = 1 - erf(x), without cancellation."""
        from scipy.special import erfc

        erfc(x, out=out)

    def reduce_lists(self, op: str, out: Any, rows: Any, offsets: Any) -> None:
        """out[i] = the reduction of rows[offsets[i]:offsets[i + 1]] by this name; no list is empty."""
        task = self.loops.of_lists(partial(reduce_lists, op, out.dtype.name))
        self.loops.compute_lists(task, offsets, [np.ascontiguousarray(rows)], out)

    @staticmethod
    def uniform(seeds: Any, shape: tuple[int, ...]) -> Any:
        """Numbers in [0, 1) that depend on a row's seed and an entry's position only."""
        return uniform(np, seeds, shape)

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
