"""The CPU as a device: NumPy's arrays, and kernels that are called; see `kernels.backend`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.kernels import row_kernels
from edbatch.kernels.backend import Backend, Lists, Order, ProgramTables
from edbatch.kernels.language.ir import Kernel
from edbatch.memory.plan.format import Plan

if TYPE_CHECKING:
    from edbatch.compiling.array_table import HasTables
    from edbatch.kernels.tables import Memory

# Numba takes time to import: only who runs something pays.
_emitter = LazyModule("edbatch.kernels.cpu.emitter")
_partitions = LazyModule("edbatch.kernels.cpu.partitions")
_machine_code = LazyModule("edbatch.kernels.cpu.machine_code")
_thread_pool = LazyModule("edbatch.kernels.cpu.thread_pool")
_tables = LazyModule("edbatch.kernels.tables")

# All memory of the process, as one array; NumPy takes one that begins at address 0 for none.
_FIRST = 64
_MEMORY: Any = (c_char * (sys.maxsize - _FIRST)).from_address(_FIRST)


def open_backend(number: int) -> Backend:
    """The backend of the device "cpu"."""
    return NumPyBackend()


class NumPyBackend:
    """What computes on the CPU: at once, so that there is nothing to wait for."""

    adds_in_groups = False
    block_bytes = 1 << 20  # which stay in a core's second-level cache

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, order: Order = "C", zeros: bool = True) -> Any:
        return (np.zeros if zeros else np.empty)(shape, dtype, order)

    @staticmethod
    def address(array: Any) -> int:
        if array.flags.carray and array.size:
            return addressof(c_char.from_buffer(array))  # takes half the time of `array.ctypes`
        address: int = array.ctypes.data
        return address

    def array_at(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        return np.ndarray(shape, dtype, _MEMORY, address - _FIRST, strides)

    def shared(self, array: Any) -> Any:
        return array if isinstance(array, np.ndarray) else np.from_dlpack(array)

    def from_host(self, array: Any, order: Order = "C", out: Any = None) -> Any:
        """The array itself, if it is in this order."""
        if out is None:
            return np.asarray(array, order=order)
        for row, value in enumerate(array):  # takes half the time of `np.stack`, or less
            out[row] = value
        return out

    def to_host(self, array: Any) -> np.ndarray:
        """The array itself."""
        return array

    def lists(self, plan: HasTables[Plan], integers: np.ndarray, first: int = 0, first_integer: int = 0) -> Lists:
        """Those of the host."""
        address = NumPyBackend.address(integers) - integers.itemsize * first_integer if len(integers) else 0
        return Lists(plan.entries.item(3, 0), address, integers)

    def handles(self, wanted: Sequence[Kernel]) -> list[int]:
        """The addresses of kernels."""
        return [_machine_code.address_of(kernel) for kernel in wanted]

    def call(self, kernel: int, n: int, size: int, given: np.ndarray) -> None:
        _emitter.each_entry(_thread_pool.device(), kernel, n, size, given)

    def squares(self, arrays: Sequence[Any]) -> Any:
        with np.errstate(over="ignore"):
            return np.array([x.dot(x) for x in arrays])

    def run_batches(
        self, first: int, stop: int, plan: HasTables[Plan], lists: Lists, memory: HasTables[Memory],
        programs: ProgramTables, scratch: int,
    ) -> None:  # fmt: skip
        directory = programs.directory  # held: what is called may run graphs, for which it is replaced
        tables = plan.entries, memory.entries, directory.entries
        _emitter.run_batches(_thread_pool.device(), first, stop, lists.indices, lists.integers, scratch, *tables)

    def add_all(self, rows: Any, whole: Any) -> None:
        if len(rows) == 1:
            whole += rows[0]
        elif _by_address(rows) and whole.flags.c_contiguous:
            address, offsets = self.address, np.array([0, len(rows)], np.int32)
            given = [1, whole.size, address(offsets), address(rows), rows.strides[0], 0, address(whole), 0, 0]
            self._compute(row_kernels.add_lists(rows.dtype.name), given)
        else:
            whole += rows.sum(axis=0, dtype=np.float64)

    def add_product(self, left: Any, right: Any, whole: Any, fresh: bool) -> None:
        # Matrices are stored by columns: the transpose is what lies row by row.
        (k, m), n = left.shape, right.shape[1]
        if k * m * n * left.itemsize >= 4 * _partitions.LEAST_PRODUCT and whole.strides[0] == whole.itemsize:
            (left, x), (right, w) = _by_rows(left), _by_rows(right)
            out = (self.address(whole), whole.strides[1] // whole.itemsize, 0)
            matrices = _tables.Matrix(*w)._replace(turned=1), _tables.Matrix(*x), _tables.Matrix(*out)
            _emitter.multiply_rows(
                _thread_pool.device(), left.itemsize, _tables.Sizes(n, m, k), *matrices, int(not fresh)
            )
            return
        if len(left) == 1:  # `matmul` does without BLAS then, and takes five times as long
            if fresh and whole.flags.f_contiguous:
                np.dot(right.T, left, out=whole.T)
            else:
                whole += np.dot(right.T, left).T
        elif fresh:
            np.matmul(right.T, left, out=whole.T)
        else:
            whole += np.matmul(right.T, left).T

    def sum_equal(self, indices: np.ndarray, rows: Any) -> tuple[np.ndarray, Any]:
        if (indices[1:] > indices[:-1]).all():
            return np.array(indices, np.int64), rows.copy()
        address, rows = self.address, rows if _by_address(rows) else np.ascontiguousarray(rows)
        order = np.argsort(indices, kind="stable").astype(np.int32)
        ranked = indices[order]
        offsets = np.flatnonzero(np.concatenate((_ONE, ranked[1:] != ranked[:-1], _ONE))).astype(np.int32)
        found = ranked[offsets[:-1]]
        total = np.empty((len(found), *rows.shape[1:]), rows.dtype)
        width, listed = total[0].size, (address(rows), rows.strides[0], address(order))
        given = [len(found), width, address(offsets), *listed, address(total), total.itemsize * width, 0]
        self._compute(row_kernels.sum_lists(rows.dtype.name), given)
        return found.astype(np.int64), total

    def _compute(self, kernel: Kernel, given: list[int]) -> None:
        self.call(_machine_code.address_of(kernel), given[0], 0, np.array(given, np.int64))

    def active(self, options: Any = None) -> AbstractContextManager[Any]:
        return nullcontext() if options is None else _thread_pool.Computing(options.threads)


_ONE = np.ones(1, bool)


def _by_rows(matrix: Any) -> tuple[Any, tuple[int, int, int]]:
    """A matrix whose entries lie side by side in each row, copied if they do not; and it as a `Matrix`."""
    columns = matrix.shape[1]
    if matrix.strides[1] != matrix.itemsize or matrix.strides[0] < columns * matrix.itemsize:
        matrix = np.ascontiguousarray(matrix)
    return matrix, (NumPyBackend.address(matrix), matrix.strides[0] // matrix.itemsize, 0)


def _by_address(rows: Any) -> bool:
    """Whether compiled loops can read rows: each row's entries side by side."""
    return bool(len(rows) and rows[0].flags.c_contiguous)
