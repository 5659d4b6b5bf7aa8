"""What the interpreter computes itself; whole programs are tested through cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cpu.backend import NumPyBackend
from tests.kernels.batches import GATHER, GATHER_MANY, SHARED, SLICE, STRIDED, additions, kept, run, sums

seeds = st.integers(0, 10**6)
each_dtype = pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)


def check(given, want, **tolerance):
    got, counts = run(NumPyBackend(), *given)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, **tolerance)
    return counts


@each_dtype
@pytest.mark.parametrize("access", [SLICE, SHARED, STRIDED, GATHER, GATHER_MANY])
@given(seeds)
def test_sums_over_lists(access, dtype, seed):
    check(*sums(seed, access, dtype), atol=1e-5 if dtype == np.float32 else 1e-14)


@each_dtype
@pytest.mark.parametrize("access", [SLICE, SHARED, STRIDED, GATHER])
@given(seeds, st.booleans())
def test_rows_are_added_to_operands(access, dtype, seed, listed):
    """One after the other, also to the same row: the sum is exact. To one row that all share: rounded once."""
    shared = 1e-6 if dtype == np.float32 else 1e-14
    tolerance = {"rtol": shared, "atol": shared} if access == SHARED else {"rtol": 0}
    check(*additions(seed, access, listed, dtype), **tolerance)


@each_dtype
@pytest.mark.parametrize("block", [1, 2, 64])
def test_results_are_kept_with_what_is_saved(block, dtype):
    """Batch after batch, in one place, and copied to where results belong."""
    assert check(*kept(1, block, dtype), rtol=1e-6 if dtype == np.float32 else 1e-14) == [9, 0]
