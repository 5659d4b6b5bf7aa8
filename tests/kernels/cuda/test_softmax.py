"""Kernels that compute the entries of a row from all of them: on the CPU they compute what NumPy computes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulated.driver import with_cpp
from tests.kernels.cuda.written import (
    DTYPES,
    EXTREMES,
    Gpu,
    exactness,
    numbers,
    seeds,
    unchanged_but,
    with_extremes,
)  # fmt: skip

WARPS = [((1, 1, 1), (32, 1)), ((3, 1, 1), (32, 4)), ((2, 1, 1), (96, 2)), ((7, 1, 1), (256, 1))]


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


rows_of_classes = given(
    numbers, st.integers(0, 9), st.integers(1, 300), st.integers(0, 5), st.sampled_from(WARPS), st.booleans(), seeds
)


@with_cpp
@settings(max_examples=60)
@rows_of_classes
def test_softmax(gpu, number, n, width, room, geometry, logarithm, seed):
    random = np.random.default_rng(seed)
    x, _ = gpu.matrix(random, (n, width), width + room, DTYPES[number], skip=room)
    x *= random.choice([1, 30, 1e4])
    with_extremes(random, x)
    out, memory = gpu.matrix(random, (n, width), width + 2, DTYPES[number])
    before = memory.copy()
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide -= wide.max(1, keepdims=True)
        wanted = (
            wide - np.log(np.exp(wide).sum(1, keepdims=True)) if logarithm
            else np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
        )  # fmt: skip
    where = (n, x, width + room, out, width + 2, width, int(logarithm))
    gpu.run(f"softmax_{number}", geometry, *where)
    np.testing.assert_allclose(out, wanted, **exactness(number))
    gpu.run(f"softmax_{number}", geometry, n, x, width + room, x, width + room, width, int(logarithm))  # in place
    np.testing.assert_array_equal(x, out)
    unchanged_but(memory, before, out)


@with_cpp
@settings(max_examples=60)
@rows_of_classes
def test_cross_entropy_and_its_gradient(gpu, number, n, width, room, geometry, one_slope, seed):
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    x, _ = gpu.matrix(random, (n, width), width + room, dtype, skip=room)
    x *= random.choice([1, 30, 1e4])
    with_extremes(random, x)
    labels = gpu.indices(random, width, n)
    out, memory = gpu.matrix(random, (n, 1), 1 + room, dtype)
    before = memory.copy()
    at = np.arange(n), labels
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide -= wide.max(1, keepdims=True)
        loss = np.log(np.exp(wide).sum(1)) - wide[at]
        slopes = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
        slopes[at] -= 1
    gpu.run(f"cross_entropy_{number}", geometry, n, x, width + room, labels, out, 1 + room, width)
    np.testing.assert_allclose(out[:, 0], loss, **exactness(number))
    unchanged_but(memory, before, out)

    g, _ = gpu.matrix(random, (1 if one_slope else n, 1), 3, dtype)
    out, memory = gpu.matrix(random, (n, width), width + room, dtype)
    before = memory.copy()
    gpu.run(
        f"cross_entropy_gradient_{number}", geometry,
        n, x, width + room, labels, g, 0 if one_slope else 3, out, width + room, width
    )  # fmt: skip
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, g * slopes, **exactness(number))
    unchanged_but(memory, before, out)


@with_cpp
@pytest.mark.parametrize(("complement", "reference"), [(0, math.erf), (1, math.erfc)])
@pytest.mark.parametrize("number", ["float", "double"])
def test_error_function(gpu, number, complement, reference):
    x = gpu.array(np.concatenate([np.linspace(-4, 4, 41), EXTREMES]).astype(DTYPES[number]))
    out = gpu.array(np.zeros_like(x))
    gpu.run(f"error_function_{number}", ((2, 1), (8, 1)), len(x), x, out, complement)
    np.testing.assert_allclose(out, [reference(value) for value in x], rtol=1e-6 if number == "float" else 1e-15)
