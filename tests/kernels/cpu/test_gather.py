"""Gathers by address, for entries of 4 and of 8 bytes."""

import numpy as np
import pytest

from edbatch.kernels.cpu.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.tables import Rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 40])
def test_rows_reach_their_columns(dtype, width):
    itemsize = np.dtype(dtype).itemsize
    random = np.random.default_rng(width)
    source = random.standard_normal((9, width + 2)).astype(dtype)
    source[0, 1] = np.nan
    rows = np.array([7, 7, 0, 8, 3, 2, 0, 1], np.int32)
    target = np.zeros((6, width + 4), dtype)
    begin = Rows(source.ctypes.data + itemsize, itemsize * (width + 2), itemsize * width)
    end = Rows(target.ctypes.data + 2 * itemsize, itemsize * (width + 4), itemsize * width)
    gather_rows(5, begin, rows, 1, end)
    want = np.zeros_like(target)
    want[:5, 2 : 2 + width] = source[rows[1:6], 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
    gather_rows_to(2, begin, rows, 1, 4, end)  # rows 7 and 0 to rows 3 and 2
    want[[3, 2], 2 : 2 + width] = source[[7, 0], 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
    copy_rows(6, begin._replace(stride=0), end)
    want[:, 2 : 2 + width] = source[0, 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
