"""What the interpreter computes itself; whole programs are tested through cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.numpy_backend import NumPyBackend
from tests.kernels.batches import GATHER, GATHER_MANY, SHARED, SLICE, STRIDED, additions, kept, run, sums

seeds = st.integers(0, 10**6)


def check(given, want, **tolerance):
    got, counts = run(NumPyBackend(), *given)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, **tolerance)
    return counts


@pytest.mark.parametrize("access", [SLICE, SHARED, STRIDED, GATHER, GATHER_MANY])
@given(seeds)
def test_sums_over_lists(access, seed):
    check(*sums(seed, access), atol=1e-5)


@pytest.mark.parametrize("access", [SLICE, SHARED, STRIDED, GATHER])
@given(seeds, st.booleans())
def test_rows_are_added_to_operands(access, seed, listed):
    """One after the other, also to the same row: the sum is exact. To one row that all share: rounded once."""
    check(*additions(seed, access, listed), **({"rtol": 1e-6, "atol": 1e-6} if access == SHARED else {"rtol": 0}))


@pytest.mark.parametrize("block", [1, 2, 64])
def test_results_are_kept_with_what_is_saved(block):
    """Batch after batch, in one place, and copied to where results belong."""
    assert check(*kept(1, block), rtol=1e-6) == [9, 0]
