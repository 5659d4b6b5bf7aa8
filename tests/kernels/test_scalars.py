"""The stated errors of the functions that fused kernels call, over the whole range of float32."""

import numpy as np
import pytest
from numba import njit

from edbatch.kernels import scalars


def compiled(function):
    @njit(error_model="numpy", fastmath={"contract"})
    def run(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    return run


GRID = np.concatenate(
    [
        np.linspace(-20, 20, 200_001),
        np.logspace(-30, 1.9, 50_000),
        -np.logspace(-30, 1.9, 50_000),
        np.linspace(-100, 90, 100_001),
    ]
).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "reference", "units", "absolute"),
    [
        ("tanh", np.tanh, 4.4, 3e-7),
        ("exp", np.exp, 1.0, None),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 2.5, None),
        ("sqrt", lambda x: np.sqrt(np.maximum(x, 0)), 1.0, None),
    ],
)
def test_error(name, reference, units, absolute):
    x = np.maximum(GRID, 0) if name == "sqrt" else GRID
    got = np.empty_like(x)
    compiled(getattr(scalars, name))(x, got)
    with np.errstate(over="ignore"):
        want = reference(x.astype(np.float64))
        rounded = want.astype(np.float32)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(rounded))
    normal = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(np.float32).tiny)
    error = np.abs(got[normal].astype(np.float64) - want[normal])
    if units is not None:
        assert (error / np.spacing(np.abs(rounded[normal]))).max() <= units
    if absolute is not None:
        assert error.max() <= absolute


@pytest.mark.parametrize("name", ["tanh", "exp", "sigmoid", "sqrt"])
def test_nan_stays(name):
    got = np.empty(1, np.float32)
    compiled(getattr(scalars, name))(np.array([np.nan], np.float32), got)
    assert np.isnan(got[0])


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_are_numpys(name):
    function = getattr(scalars, name)

    @njit(error_model="numpy")
    def run(a, b, out):
        for i in range(len(a)):
            out[i] = function(a[i], b[i])

    values = np.array([-1, 0, 2, np.nan, np.inf, -np.inf], np.float32)
    a, b = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    out = np.empty_like(a)
    run(a, b, out)
    np.testing.assert_array_equal(out, getattr(np, name)(a, b))
