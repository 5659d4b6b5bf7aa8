"""Products through BLAS, in one piece and in several, against float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cpu.products import (
    LEAST_PIECE,
    SMALL,
    Gemm,
    Matrices,
    Matrix,
    Sizes,
    gemms,
    multiply,
    multiply_each,
)

DTYPES = [np.float32, np.float64]


def gemm(dtype):
    itemsize = np.dtype(dtype).itemsize
    return Gemm(gemms()[itemsize // 8], itemsize)


def matrix(array, turned=0):
    return Matrix(array.ctypes.data, array.shape[-1], turned)


def check(m, n, k, transposed, add, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((m, k + 3)).astype(dtype)
    stored = random.standard_normal((n, k + 2) if transposed else (k, n + 2)).astype(dtype)
    out = random.standard_normal((m, n + 5)).astype(dtype)
    w = stored[:, :k].T if transposed else stored[:, :n]
    want = x[:, :k].astype(np.float64) @ w + (out[:, :n] if add else 0)
    untouched = out[:, n:].copy()
    multiply(gemm(dtype), Sizes(m, n, k), matrix(x), matrix(stored, transposed), matrix(out), add)
    unit = 1 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(out[:, :n], want, rtol=1e-4 * unit, atol=1e-5 * unit * k**0.5)
    np.testing.assert_array_equal(out[:, n:], untouched)


@given(
    st.integers(1, 40), st.integers(1, 90), st.integers(1, 90), st.integers(0, 1), st.integers(0, 1),
    st.sampled_from(DTYPES), st.integers(0, 9),
)  # fmt: skip
def test_small_products(m, n, k, transposed, add, dtype, seed):
    check(m, n, k, transposed, add, dtype, seed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1500, 901), (7, 1280, 517), (45, 1280, 64), (200, 320, 128)])
def test_products_in_pieces(m, n, k, transposed, add, dtype):
    assert m * n * k > SMALL
    assert (m * n * LEAST_PIECE <= SMALL) == (m < 200)  # in pieces; the last one is too large for them
    check(m, n, k, transposed, add, dtype)


@given(
    st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.sampled_from(DTYPES),
    st.sampled_from(["nn", "nt", "tn", "tt"]), st.integers(0, 9),
)  # fmt: skip
def test_a_product_for_each_call(calls, m, n, k, dtype, turned, seed):
    """Of which one operand is the same for all."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((calls, *((k, m) if turned[0] == "t" else (m, k)))).astype(dtype)
    b = random.standard_normal((n, k) if turned[1] == "t" else (k, n)).astype(dtype)
    out = np.zeros((calls, m, n + 2), dtype)
    left, right = matrix(a, int(turned[0] == "t")), matrix(b, int(turned[1] == "t"))
    strides = a.strides[0], 0, out.strides[0]
    given = (Matrices(stride, first) for stride, first in zip(strides, (left, right, matrix(out)), strict=True))
    multiply_each(gemm(dtype), calls, Sizes(m, n, k), *given)
    want = (a.transpose(0, 2, 1) if turned[0] == "t" else a) @ (b.T if turned[1] == "t" else b)
    np.testing.assert_allclose(out[:, :, :n], want, atol=1e-5 if dtype == np.float32 else 1e-13)
    assert not out[:, :, n:].any()


def test_a_product_without_rows_writes_nothing():
    out = np.ones((2, 2), np.float32)
    multiply(gemm(np.float32), Sizes(0, 2, 2), *(matrix(out),) * 3, 0)
    np.testing.assert_array_equal(out, 1)
