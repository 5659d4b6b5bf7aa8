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
    rows_of_numbers,
    seeds,
    some_or_none,
    unchanged_but,
)  # fmt: skip


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


def of_segments(random, gpu, n, most=3):
    """Offsets, some segments empty."""
    return gpu.array(np.cumsum(np.r_[0, random.integers(0, random.integers(1, most + 2), n)]).astype(np.int32) + 2)


@with_cpp
@rows_of_numbers
def test_add_grouped(gpu, number, n, width, room, geometry, seed):
    """In order: to the bit what NumPy's add.at gets."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n)
    members = some_or_none(random, gpu, 5, offsets[-1])
    rows = gpu.array(random.permutation(n + 3)[:n].astype(np.int32)) if random.random() < 0.6 else None
    source, _ = gpu.matrix(random, (5 if members is not None else offsets[-1], width), width + room, dtype, skip=room)
    target, memory = gpu.matrix(random, (n + 3, width), width + 1, dtype)
    before, wanted = memory.copy(), target.copy()
    used = np.arange(offsets[0], offsets[-1])
    owners = np.repeat(np.arange(n) if rows is None else rows, np.diff(offsets))
    np.add.at(wanted, owners, source[used if members is None else members[used]])
    gpu.run(
        f"add_grouped_{number}", geometry,
        n, offsets, members, rows, source, width + room, target, width + 1, width
    )  # fmt: skip
    np.testing.assert_array_equal(target, wanted)
    unchanged_but(memory, before, target)


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
