"""Copies by address, for entries of 4 and of 8 bytes."""

import numpy as np
import pytest

from edbatch.kernels.cpu.gather import move_rows
from edbatch.kernels.tables import Listed, Rows


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
    first, third = rows[1:].ctypes.data, rows[4:].ctypes.data
    move_rows(5, Listed(begin, first), Listed(end, 0))
    want = np.zeros_like(target)
    want[:5, 2 : 2 + width] = source[rows[1:6], 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
    move_rows(2, Listed(begin, first), Listed(end, third))  # rows 7 and 0 to rows 3 and 2
    want[[3, 2], 2 : 2 + width] = source[[7, 0], 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
    move_rows(6, Listed(begin._replace(stride=0), 0), Listed(end, 0))
    want[:, 2 : 2 + width] = source[0, 1 : 1 + width]
    np.testing.assert_array_equal(target, want)
