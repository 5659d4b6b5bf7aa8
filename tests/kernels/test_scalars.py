"""Functions that update rules call mean what NumPy's mean."""

import numpy as np
import pytest
from numba import njit

from edbatch.kernels import scalars

VALUES = np.array([-1, 0, 2, np.nan, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_are_numpys(name):
    function = getattr(scalars, name)

    @njit(error_model="numpy")
    def run(a, b, out):
        for i in range(len(a)):
            out[i] = function(a[i], b[i])

    a, b = (grid.ravel().copy() for grid in np.meshgrid(VALUES, VALUES))
    out = np.empty_like(a)
    run(a, b, out)
    np.testing.assert_array_equal(out, getattr(np, name)(a, b))


def test_roots_are_numpys():
    function = scalars.sqrt

    @njit(error_model="numpy")
    def run(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    out = np.empty_like(VALUES)
    run(VALUES, out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out, np.sqrt(VALUES))
