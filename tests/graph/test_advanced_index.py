"""Indices as NumPy means them: new axes, lists, truth values, ellipses, negative steps; values and gradients."""

import numpy as np
import pytest

import edbatch as eb

X = np.random.default_rng(0).normal(size=(2, 3, 4))
FULL = slice(None)
KEYS = [
    None,
    (None, 0),
    (..., None),
    (0, None, FULL, None),
    (FULL, None, 1),
    ...,
    (..., 0),
    (0, ..., -1),
    slice(None, None, -1),
    (FULL, slice(None, 0, -2)),
    (slice(None, None, -1), slice(2, None, -1), slice(3, 0, -2)),
    [1, 0],
    ([0, 1, 1, -1],),
    (0, [2, 0]),
    (0, [2, 0], 1),
    ([1, 0], FULL, 2),
    (FULL, [0, 2], None),
    (None, [0], 0, ...),
    (0, None, [1, 2]),
    (FULL, [True, False, True]),
    (slice(None, None, -1), ..., [0]),
    range(2),
    np.array([1, -1]),
    (FULL, np.array([False, True, False])),
    (FULL, FULL, np.arange(4) > 1),
    np.int64(1),
    (np.int32(-1), np.array(2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_value_and_gradient_are_numpys(key):
    want = X[key]
    seed = np.random.default_rng(1).normal(size=want.shape)
    with eb.Graph(dtype="float64"):
        x = eb.input(X)
        y = x[key]
        # Used op by op and twice, so that views, copies and sums of gradients are all there.
        loss = eb.sum(y * seed) + eb.sum(eb.tanh(x[key]) * seed)
    assert y.shape == want.shape
    loss.backward()
    np.testing.assert_array_equal(y.value(), want)
    gradient = np.zeros_like(X)
    np.add.at(gradient, key, seed + seed * (1 - np.tanh(want) ** 2))
    np.testing.assert_allclose(x.gradient(), gradient, atol=1e-12)


@pytest.mark.parametrize("words", [[2, 0, 2, -1], [1], range(3), np.array([1, 1])], ids=str)
def test_rows_of_a_table(words):
    table = eb.ParameterCollection(dtype="float64").add_lookup_parameters((3, 4), init=X[0])
    with eb.Graph(dtype="float64"):
        rows = table[words]
        loss = eb.sum(rows * np.arange(len(words))[:, None])
        for wrong in ([0, 3], [0.5], []):
            with pytest.raises(eb.EdBatchError, match=r"lookup|at least one"):
                table[wrong]
    loss.backward()
    np.testing.assert_array_equal(rows.value(), X[0][list(words)])
    gradient = np.zeros((3, 4))
    np.add.at(gradient, list(words), np.arange(len(words))[:, None])
    np.testing.assert_array_equal(table.grad(), gradient)
