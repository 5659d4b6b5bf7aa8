"""How a kernel is called, on every device: the number of rows, and ONE array of int64 with all else.

kernel(n, given)                       on a GPU, the array itself
kernel(first, stop, given, scratch)    on a CPU, for the rows from the first on: the addresses of the array and of room
                                       for what an `Analysis` says is kept

sizes      per axis its size; of the list axis, the address of the offsets of all rows' lists
places     per place base (an address), distance between rows (bytes), list (its address, or 0)
strides    one for each RUN of the instructions, then of the stores, in their order; in entries
columns    in entries
integers   per integer the address of the first row's; those of the others follow
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from edbatch.kernels.language.ir import RUN, Access, Kernel

PLACE = 3  # words of one


class Given:
    """Where things are in the array.

    Attributes:
        places, strides, columns, integers, words: where these begin; how many words there are.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._strides: dict[tuple[Access, int], int] = {}
        count = 0
        for access in kernel.accesses:
            along = () if access.index is None else (access.along,)
            for axis, stride in enumerate((*access.strides, *along)):
                if stride == RUN:
                    self._strides.setdefault((access, axis), count)
                    count += 1
        self.places = kernel.axes
        self.strides = self.places + PLACE * len(kernel.places)
        self.columns = self.strides + count
        self.integers = self.columns + kernel.columns
        self.words = self.integers + kernel.integers

    def stride(self, access: Access, axis: int) -> int:
        """Where the stride of an access along an axis is; the axis after the last is that of an index."""
        return self.strides + self._strides[access, axis]


@cache
def given_of(kernel: Kernel) -> Given:
    """Where things are in a kernel's array."""
    return Given(kernel)


def filled(
    kernel: Kernel,
    sizes: Sequence[int],
    places: Iterable[tuple[int, int, int]],
    strides: Iterable[int] = (),
    columns: Iterable[int] = (),
    integers: Iterable[int] = (),
) -> np.ndarray:
    """The array, filled: what is given in this module's order."""
    words = [*sizes, *(word for place in places for word in place), *strides, *columns, *integers]
    given = np.array(words, np.int64)
    assert len(given) == given_of(kernel).words
    return given
