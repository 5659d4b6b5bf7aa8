"""Scatter-adds against NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cpu.scatter import add_rows, add_rows_at


@given(st.integers(0, 6), st.integers(1, 5), st.integers(0, 3), st.integers(0, 4), st.integers(0, 10**6))
def test_rows_at_a_distance(n, width, distance, column, seed):
    random = np.random.default_rng(seed)
    source = random.standard_normal((n + 1) * (width + 2))
    target = random.standard_normal((distance * n + 1, width + column))
    want = target.copy()
    for i in range(n):
        want[i * distance, column:] += source[1 + i * (width + 2) :][:width]
    add_rows(source, 1, width + 2, n, target.reshape(-1), column, distance * (width + column), width)
    np.testing.assert_array_equal(target, want)


@given(st.integers(0, 8), st.integers(1, 5), st.booleans(), st.integers(0, 10**6))
def test_rows_anywhere(n, width, placed, seed):
    random = np.random.default_rng(seed)
    source, target = random.standard_normal((n, width)), random.standard_normal((5, width + 3))
    to = random.integers(0, 5, n)
    positions = random.permutation(n)
    indices = np.concatenate([to, positions]).astype(np.int32)
    want = target.copy()
    for i in range(n):
        want[to[i], 2 : 2 + width] += source[positions[i] if placed else i]
    add_rows_at(
        source.reshape(-1), 0, width, indices, n if placed else -1, 0, n, target.reshape(-1), 2, width + 3, width
    )
    np.testing.assert_array_equal(target, want)
