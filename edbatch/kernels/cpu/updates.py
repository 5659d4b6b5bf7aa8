"""What an update of many parameters does, in one call of compiled code however many there are."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import c_function, call_kernel

_sdot, _ddot = c_function("plplp", "f"), c_function("plplp", "d")
MOST = 1 << 30  # entries that BLAS, which counts in 32 bits, is given at a time


@compiled(small=True)
def call_kernels(calls: np.ndarray) -> None:
    """Call kernels, one after the other; `calls` [n, 3]: the kernel's address, rows, address of what else is given."""
    for at in range(len(calls)):
        if calls[at, 1]:
            call_kernel(calls[at, 0], 0, calls[at, 1], calls[at, 2])


@compiled(small=True)
def sum_squares(dots: np.ndarray, lists: np.ndarray, found: np.ndarray) -> None:
    """Fill in the sums of the squares of lists of numbers.

    Args:
        dots: see `products.dots`.
        lists: [n, 3], of each list the address, how many numbers it has, and their size.
        found: [n].
    """
    for at in range(len(lists)):
        begin, n, itemsize = lists[at, 0], lists[at, 1], lists[at, 2]
        found[at] = 0.0
        for first in range(0, n, MOST):
            entries, some = begin + itemsize * first, min(n - first, MOST)
            if itemsize == 8:
                found[at] += _ddot(dots[1], some, entries, 1, entries, 1)
            else:
                found[at] += _sdot(dots[0], some, entries, 1, entries, 1)
