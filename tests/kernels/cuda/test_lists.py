"""Kernels that reduce lists of rows: on the CPU they compute what NumPy computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulated.driver import with_cpp
from tests.kernels.cuda.written import (
    ANY_BLOCK,
    DTYPES,
    Gpu,
    exactness,
    numbers,
    rows_of_numbers,
    seeds,
    some_or_none,
    unchanged_but,
    with_extremes,
)  # fmt: skip

TOGETHER = [((1, 1), (1, 7)), ((2, 3), (8, 5)), ((3, 1), (8, 32)), ((1, 2), (1, 256)), ((9, 9), (2, 2))]


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


def of_segments(random, gpu, n, most=3):
    """Offsets, some segments empty."""
    return gpu.array(np.cumsum(np.r_[0, random.integers(0, random.integers(1, most + 2), n)]).astype(np.int32) + 2)


@with_cpp
@pytest.mark.parametrize("kind", [0, 1, 2])
@given(
    numbers, st.integers(0, 9), st.integers(1, 70), st.integers(0, 5),
    st.sampled_from([x for x in ANY_BLOCK if x[1][1] == 1]), seeds
)  # fmt: skip
def test_segment_reduce(gpu, kind, number, n, width, room, geometry, seed):
    """In order: to the bit what NumPy gets, one after the other."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n, most=9)
    rows = some_or_none(random, gpu, 5, offsets[-1])
    source, _ = gpu.matrix(random, (5 if rows is not None else offsets[-1], width), width + room, dtype, skip=room)
    with_extremes(random, source)
    out, memory = gpu.matrix(random, (n, width), width + 1, dtype)
    before = memory.copy()
    wanted = np.full((n, width), [0, -np.inf, np.inf][kind], dtype)
    with np.errstate(all="ignore"):
        for i in range(n):
            for k in range(offsets[i], offsets[i + 1]):
                row = source[k if rows is None else rows[k]]
                wanted[i] = [np.add, np.maximum, np.minimum][kind](wanted[i], row)
    gpu.run(f"segment_reduce_{number}", geometry, n, offsets, rows, source, width + room, out, width + 1, width, kind)
    np.testing.assert_array_equal(out, wanted)
    unchanged_but(memory, before, out)


@with_cpp
@given(
    numbers, st.integers(0, 9), st.integers(1, 20), st.integers(0, 5), st.sampled_from(TOGETHER), st.integers(0, 4),
    seeds
)  # fmt: skip
def test_lists_that_threads_reduce_together(gpu, number, n, width, room, geometry, kind, seed):
    """What one thread gets, but for the order of sums; and the same again."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[number]
    offsets = of_segments(random, gpu, n, most=300)
    rows = some_or_none(random, gpu, 5, offsets[-1])
    source, _ = gpu.matrix(random, (5 if rows is not None else offsets[-1], width), width + room, dtype, skip=room)
    with_extremes(random, source)
    out, memory = gpu.matrix(random, (n, width), width + 1, dtype)
    before = memory.copy()
    found = []
    for way in (geometry, geometry, ((1, 1), (1, 1))):
        gpu.run(f"segment_reduce_{number}", way, n, offsets, rows, source, width + room, out, width + 1, width, kind)
        found.append(out.copy())
    np.testing.assert_array_equal(found[0], found[1])
    if kind in (1, 2):
        np.testing.assert_array_equal(found[0], found[2])
    else:
        rtol, atol = (1e-5, 1e-4) if number == "float" else (1e-13, 1e-12)  # numbers of both signs
        np.testing.assert_allclose(found[0], found[2], rtol, atol)
    unchanged_but(memory, before, out)


@with_cpp
@pytest.mark.parametrize("number", ["float", "double"])
def test_means_and_logarithms_of_sums_of_lists(gpu, number):
    random = np.random.default_rng(0)
    source, _ = gpu.matrix(random, (9, 3), 3, DTYPES[number])
    source[:4, 0] = -np.inf, -np.inf, 1000, -np.inf
    source[:3, 1] = np.inf, -np.inf, np.nan
    offsets = gpu.array(np.array([0, 2, 3, 9], np.int32))
    rows = gpu.array(random.permutation(9).astype(np.int32))
    for listed in (None, rows):
        lists = np.split(source if listed is None else source[listed], offsets[1:-1])
        with np.errstate(all="ignore"):
            wanted = [[x.mean(axis=0) for x in lists], [np.logaddexp.reduce(x, axis=0) for x in lists]]
        for kind, want in zip((3, 4), wanted, strict=True):
            out = gpu.array(np.zeros((3, 3), DTYPES[number])).reshape(3, 3)
            gpu.run(f"segment_reduce_{number}", ((1, 1), (32, 1)), 3, offsets, listed, source, 3, out, 3, 3, kind)
            np.testing.assert_allclose(out, want, rtol=1e-6 if number == "float" else 1e-14)


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
