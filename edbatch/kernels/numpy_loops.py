"""The CPU's compiled loops, as the runtime calls those of any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edbatch.kernels import interpreter, segment_sums
from edbatch.kernels.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.machine_code import address_of
from edbatch.kernels.numpy_backend import NumPyBackend
from edbatch.kernels.pointers import KERNEL
from edbatch.kernels.products import sgemm_address
from edbatch.kernels.scatter import add_rows, add_rows_at
from edbatch.kernels.tables import Memory

__all__ = [
    "add_all", "add_at", "add_product", "add_rows", "add_rows_at", "adds_in_groups", "computes", "copy_rows", "divides",
    "gather_rows", "gather_rows_to", "handles", "list_reductions", "prepared", "puts_lists_together", "run_batches",
    "run_steps", "sum_equal",
]  # fmt: skip

_address = NumPyBackend.address
NO_INDICES = np.empty(0, np.int32)

#: Reductions of lists that need no Python, by the names of their ops.
list_reductions = frozenset({"sum_list", "mean_list"})
#: Whether they go back through means of lists.
divides = True
#: Whether these need scratch, to put lists' rows from several places side by side.
puts_lists_together = False
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


def computes(op: str, scalar: str, operands: int) -> bool:
    """Whether there are kernels for single ops; NumPy's functions are as fast."""
    return False


def run_steps(
    tables: Any, first: int, addresses: np.ndarray, strides: np.ndarray, integers: Any, begin: int, n: int, m: int
) -> int:
    """See `interpreter.run_steps`; to the end of a program's tables, n: the distance between a call's integers."""
    return interpreter.run_steps(
        tables.steps, first, len(tables.steps), tables.places, tables.kernels, addresses, strides,
        np.zeros(len(strides), np.int64), integers, begin, n,
        m, sgemm_address(),
    )  # fmt: skip


def run_batches(
    first: int, stop: int, plan: Any, indices: Any, memory: Memory, programs: Any, scratch: int
) -> int:  # fmt: skip
    """See `interpreter.run_batches`; `plan` has the tables of `Batches`, `programs` has `tables`."""
    return interpreter.run_batches(
        first, stop, indices, scratch, sgemm_address(), plan.batches, plan.operands, plan.segments, *memory,
        *programs.tables,
    )  # fmt: skip


def add_at(array: Any, rows: np.ndarray, values: Any) -> None:
    """array[rows[i]] += values[i], one after the other; for arrays whose rows are not contiguous."""
    np.add.at(array, rows, values)


def add_all(rows: Any, whole: Any) -> None:
    """whole [*shape] += the sum of rows [n, *shape]."""
    if _by_address(rows) and whole.flags.c_contiguous:
        stride = rows.strides[0] // rows.itemsize
        segment_sums.add_listed(len(rows), NO_INDICES, -1, _address(rows), stride, _address(whole), whole.size)
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
    found, to = np.unique(indices, return_inverse=True)
    total = np.zeros((len(found), *rows.shape[1:]), np.float64)
    if _by_address(rows):
        stride = rows.strides[0] // rows.itemsize
        segment_sums.add_each(len(rows), _address(rows), stride, to, total.reshape(len(found), -1))
    else:
        np.add.at(total, to, rows)
    return found.astype(np.int64), total.astype(rows.dtype)


def _by_address(rows: Any) -> bool:
    """Whether compiled loops can read rows: float32, each row's entries side by side."""
    return bool(rows.dtype == np.float32 and len(rows) and rows[0].flags.c_contiguous)
