"""Products through BLAS, in one piece and in several, against float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels import products
from edbatch.kernels.products import LEAST_PIECE, SMALL, multiply, sgemm_address


def check(m, n, k, transposed, add, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((m, k + 3), np.float32)
    stored = random.standard_normal((n, k + 2) if transposed else (k, n + 2), np.float32)
    out = random.standard_normal((m, n + 5), np.float32)
    w = stored[:, :k].T if transposed else stored[:, :n]
    want = x[:, :k].astype(np.float64) @ w + (out[:, :n] if add else 0)
    untouched = out[:, n:].copy()
    multiply(
        sgemm_address(), m, n, k, x.ctypes.data, k + 3, stored.ctypes.data, stored.shape[1], transposed, add,
        out.ctypes.data, n + 5,
    )  # fmt: skip
    np.testing.assert_allclose(out[:, :n], want, rtol=1e-4, atol=1e-5 * k**0.5)
    np.testing.assert_array_equal(out[:, n:], untouched)


@given(
    st.integers(1, 40), st.integers(1, 90), st.integers(1, 90), st.integers(0, 1), st.integers(0, 1), st.integers(0, 9)
)
def test_small_products(m, n, k, transposed, add, seed):
    check(m, n, k, transposed, add, seed)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1500, 901), (7, 1280, 517), (45, 1280, 64), (200, 320, 128)])
def test_products_in_pieces(m, n, k, transposed, add):
    assert m * n * k > SMALL
    assert (m * n * LEAST_PIECE <= SMALL) == (m < 200)  # in pieces; the last one is too large for them
    check(m, n, k, transposed, add)


def test_a_product_without_rows_writes_nothing():
    out = np.ones(4, np.float32)
    multiply(sgemm_address(), 0, 2, 2, out.ctypes.data, 2, out.ctypes.data, 2, 0, 0, out.ctypes.data, 2)
    np.testing.assert_array_equal(out, 1)
    assert products.sgemm_address() == sgemm_address()
