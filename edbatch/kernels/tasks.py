"""What runs in the place of a program, on every device: kernels of lists, and additions of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edbatch.kernels.backend import Backend
from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.program import ADD_ROWS, LISTS, Each, Task
from edbatch.kernels.row_kernels import add_lists, add_rows


def computing_lists(make: Callable[[int], Kernel], backend: Backend) -> Task:
    """What computes lists.

    Args:
        make: from the bits of a number in lists and offsets to the kernel; see `list_kernels`.
    """
    kernel = make(backend.list_bits)
    (handle,) = backend.handles([kernel])
    each = Each.COLUMN if analysis_of(kernel).grouped else Each.ELEMENT if kernel.places[-1].elements else Each.ROW
    return Task(LISTS, np.dtype(kernel.dtype).itemsize, handle, operands=len(kernel.places) - 1, each=each)


def adding_rows(dtype: np.dtype, backend: Backend) -> Task:
    """What adds rows to rows."""
    one_to_one, to_groups = backend.handles([make(dtype.name) for make in (add_rows, add_lists)])
    return Task(ADD_ROWS, dtype.itemsize, one_to_one, to_groups)
