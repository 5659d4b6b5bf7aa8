"""The kernels that are written by hand, on the CPU, and rows for them: views of memory whose other parts must stay."""

import numpy as np
from hypothesis import strategies as st

from edbatch.kernels.cuda.backend import KERNELS
from edbatch.kernels.cuda.source import rows as rows_source
from tests.emulated.arrays import plain
from tests.emulated.driver import EmulatedDriver

DTYPES = {"float": np.float32, "double": np.float64}
ANY_BLOCK = [((1, 1, 1), (1, 1)), ((3, 1, 1), (48, 1)), ((2, 3, 1), (8, 5)), ((1, 2, 1), (256, 1))]
numbers = st.sampled_from(["float", "double"])
seeds = st.integers(0, 2**32 - 1)


class Gpu:
    """All of them, by name."""

    def __init__(self):
        self.driver = EmulatedDriver()
        self.kernels = dict(zip(KERNELS, self.driver.load(rows_source(), KERNELS), strict=True))

    def run(self, name, geometry, *parameters):
        self.driver.run(self.kernels[name], *geometry, *parameters)
        self.driver.synchronize()

    def array(self, values, skip=0):
        """A copy in its memory, that begins `skip` entries beyond a multiple of 256 bytes; NaN behind the last."""
        values = np.asarray(values)
        array = plain(self.driver.empty(values.size + skip, values.dtype))[skip:]
        array[:] = values.ravel()
        return array

    def matrix(self, random, shape, stride, dtype, skip=0):
        """Random rows `stride` entries apart, as a view, and the memory that they lie in."""
        n = shape[0]
        memory = plain(self.driver.empty(max(n * stride, 1) + skip, dtype))[skip:]
        rows = np.lib.stride_tricks.as_strided(memory, shape, (stride * memory.itemsize, memory.itemsize))
        rows[:] = random.normal(size=shape)
        return rows, memory

    def indices(self, random, below, count):
        return self.array(random.integers(0, below, count).astype(np.int32))


def unchanged_but(memory, before, view):
    """Memory between the rows of a view is as it was."""
    view[:] = 0
    after = memory.copy()
    memory[:] = before
    view[:] = 0
    np.testing.assert_array_equal(after, memory)


def exactness(number):
    return {"rtol": 4e-6, "atol": 2e-6} if number == "float" else {"rtol": 1e-13, "atol": 1e-13}
