"""Softmax of rows against SciPy's in float64."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from edbatch.kernels.softmax import softmax_rows


@pytest.mark.parametrize("logarithm", [0, 1])
@pytest.mark.parametrize("width", [1, 5, 100])
def test_softmax(width, logarithm):
    x = np.random.default_rng(width).standard_normal((7, width + 1)).astype(np.float32) * 20
    x[2, :width] += 1e4
    x[3, :width] = -np.inf
    x[4, 0] = np.nan
    x[5, 0] = np.inf
    out = np.full((7, width + 2), 9, np.float32)
    softmax_rows(7, x.ctypes.data, width + 1, out.ctypes.data, width + 2, width, logarithm)
    with np.errstate(invalid="ignore"):
        want = (log_softmax if logarithm else softmax)(x[:, :width].astype(np.float64), axis=1)
    rows = [0, 1, 2, 6]
    np.testing.assert_allclose(out[rows, :width], want[rows], rtol=2e-6, atol=2e-6 * (1 + 100 * logarithm))
    assert np.isnan(out[3:5, :width]).all()
    assert np.isnan(out[5, 0])
    assert (out[:, width:] == 9).all()
