"""Products that are cut into small ones are what NumPy computes in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from edbatch.compiling.compiled import at_once
from edbatch.kernels.cpu import emitter
from edbatch.kernels.cpu.products import SMALL, gemms
from edbatch.kernels.tables import Matrix, Sizes

# Few rows and many, each way of cutting, sums and results too small for it, and what does not come out even.
SIZES = [
    (1, 512, 1280),
    (3, 1280, 512),
    (19, 1024, 256),
    (24, 256, 1030),
    (48, 256, 64),
    (70, 512, 1280),
    (130, 129, 9),
]
SIZES += [(33, 33, 77), (200, 256, 64), (16, 2048, 512)]


def matrix(array: np.ndarray, turned: bool) -> Matrix:
    """As compiled loops are given it."""
    return Matrix(array.ctypes.data, array.strides[turned] // array.itemsize, int(turned))


@pytest.mark.parametrize("small", [0, SMALL])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_pieces(sizes: tuple[int, int, int], dtype: Any, small: int) -> None:
    """Of matrices stored either way, in rows of a wider array, filled in and added."""
    (m, k, n), random = sizes, np.random.default_rng(0)
    left, right = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    expected = left.astype("f8") @ right.astype("f8")
    device = np.append(gemms(), [0, 0, small])
    for x_turned, w_turned, add in product((False, True), (False, True), (0, 1)):
        x, w = (np.asfortranarray(one) if turned else one for one, turned in ((left, x_turned), (right, w_turned)))
        room = np.full((m, n + 5), 7, dtype)
        out = Matrix(room.ctypes.data, n + 5, 0)
        with at_once():
            given = matrix(x, x_turned), matrix(w, w_turned), out
            emitter.multiply_rows(device, room.itemsize, Sizes(m, n, k), *given, add)
        np.testing.assert_allclose(
            room[:, :n], expected + 7 * add, rtol=1e-4, atol=1e-3 if dtype == "float32" else 1e-9
        )
        assert (room[:, n:] == 7).all()
