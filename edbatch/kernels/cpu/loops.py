"""The CPU's compiled loops, as the runtime calls those of any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from edbatch.kernels import row_kernels
from edbatch.kernels.cpu import emitter
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.cpu.machine_code import address_of
from edbatch.kernels.cpu.pointers import KERNEL, call_kernel
from edbatch.kernels.cpu.products import gemms
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.list_kernels import reduce_lists
from edbatch.kernels.program import ADD_ROWS, LISTS, Task
from edbatch.kernels.tables import Memory

__all__ = [
    "add_all", "add_product", "adding", "adds_in_groups", "handles", "of_lists", "prepared", "run_batches", "sum_equal",
]  # fmt: skip

_address = NumPyBackend.address

#: Whether rows that occur several times in a list have to be known before they are added up.
adds_in_groups = False


def handles(wanted: Sequence[Kernel]) -> list[int]:
    """The addresses of kernels."""
    return [address_of(kernel) for kernel in wanted]


def prepared(kernel: Kernel, size: int, given: np.ndarray) -> Callable[[int], None]:
    """What computes so many rows of `size` entries by a kernel without reductions.

    Args:
        kernel: the kernel.
        size: of rows.
        given: see `language.given`; read each time, and kept by the caller.
    """
    function, address = KERNEL(address_of(kernel)), _address(given)
    return lambda n: function(n, address)


def of_lists(make: Callable[[int], Kernel]) -> Task:
    """What computes lists.

    Args:
        make: from the bits of a number in lists and offsets to the kernel; see `list_kernels`.
    """
    kernel = make(64)  # lists are of addresses
    itemsize = np.dtype(kernel.dtype).itemsize
    return Task(LISTS, itemsize, address_of(kernel), operands=len(kernel.places) - 1)


@cache
def adding(dtype: np.dtype) -> Task:
    """What adds rows to rows."""
    one_to_one, to_one = (address_of(make(dtype.name)) for make in (row_kernels.add_rows, row_kernels.add_lists))
    return Task(ADD_ROWS, dtype.itemsize, one_to_one, to_one)


def run_batches(
    first: int, stop: int, plan: Any, indices: Any, memory: Memory, programs: Any, scratch: int
) -> None:  # fmt: skip
    """See `kernels.interpreter`; `plan` has the tables of `Batches`, `programs` has `tables`."""
    emitter.run_batches(
        gemms(), first, stop, indices, _address(indices), scratch, plan.batches, plan.operands, plan.segments, *memory,
        *programs.tables,
    )  # fmt: skip


def add_all(rows: Any, whole: Any) -> None:
    """whole [*shape] += the sum of rows [n, *shape]."""
    if _by_address(rows) and whole.flags.c_contiguous:
        offsets = np.array([0, len(rows)], np.int32)
        given = [whole.size, _address(offsets), _address(rows), rows.strides[0], 0, _address(whole), 0, 0, 0]
        call_kernel(adding(rows.dtype).to_one, 1, _address(np.array(given)))
    else:
        whole += rows.sum(axis=0, dtype=np.float64)


def add_product(left: Any, right: Any, whole: Any, fresh: bool) -> None:
    """whole [m, n] += leftᵀ right, of left [k, m] and right [k, n]; fresh: `whole` is all zeros."""
    # Matrices are stored by columns: the transpose is what lies row by row.
    if fresh:
        np.matmul(right.T, left, out=whole.T)
    else:
        whole += np.matmul(right.T, left).T


def sum_equal(indices: np.ndarray, rows: Any) -> tuple[np.ndarray, Any]:
    """Each index once, ascending (int64), and its rows [n, *entry] added up in their order."""
    if (indices[1:] > indices[:-1]).all():
        return np.array(indices, np.int64), rows.copy()
    rows = rows if _by_address(rows) else np.ascontiguousarray(rows)
    found, to = np.unique(indices, return_inverse=True)
    total = np.empty((len(found), *rows.shape[1:]), rows.dtype)
    listed = _address(rows) + rows.strides[0] * np.argsort(to, kind="stable")
    offsets = np.append(0, np.cumsum(np.bincount(to)))
    width = total[0].size
    given = [width, _address(offsets), 0, 1, _address(listed), _address(total), total.itemsize * width, 0, 0]
    task = of_lists(partial(reduce_lists, "sum_list", rows.dtype.name))
    call_kernel(task.kernel, len(found), _address(np.array(given)))
    return found.astype(np.int64), total


def _by_address(rows: Any) -> bool:
    """Whether compiled loops can read rows: each row's entries side by side."""
    return bool(len(rows) and rows[0].flags.c_contiguous)
