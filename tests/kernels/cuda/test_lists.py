"""Kernels that add up rows: on the CPU they compute what NumPy computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulated.libraries import with_cpp
from tests.kernels.cuda.written import (
    DTYPES,
    Gpu,
    exactness,
    numbers,
    seeds,
    unchanged_but,
)  # fmt: skip


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


@with_cpp
@given(
    numbers, st.integers(0, 40), st.integers(1, 70), st.integers(0, 5),
    st.sampled_from([((1,), (1, 1)), ((2,), (32, 5)), ((1,), (16, 7)), ((3,), (32, 32))]), seeds
)  # fmt: skip
def test_add_all(gpu, number, n, width, room, geometry, seed):
    random = np.random.default_rng(seed)
    source, _ = gpu.matrix(random, (n, width), width + room, DTYPES[number], skip=room)
    target, memory = gpu.matrix(random, (1, width), width + 1, DTYPES[number])
    before = memory.copy()
    wanted = target + source.astype(np.float64).sum(0)
    gpu.run(f"add_all_{number}", geometry, n, source, width + room, target, width)
    np.testing.assert_allclose(target, wanted, **exactness(number))
    again = target.copy()
    memory[:] = before
    gpu.run(f"add_all_{number}", geometry, n, source, width + room, target, width)
    np.testing.assert_array_equal(target, again)
    unchanged_but(memory, before, target)
