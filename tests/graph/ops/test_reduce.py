"""Reductions over whatever holds several expressions, and over axes given in any way."""

from collections import deque

import numpy as np
import pytest

import edbatch as eb

ROWS = np.random.default_rng(0).normal(size=(4, 3))
REDUCTIONS = {
    eb.sum: np.sum,
    eb.mean: np.mean,
    eb.max: np.max,
    eb.min: np.min,
    eb.maximum: np.max,
    eb.minimum: np.min,
    eb.logsumexp: lambda x, axis: np.log(np.exp(x).sum(axis)),
}
HOLDERS = [
    list, tuple, lambda xs: (x for x in xs), lambda xs: map(eb.neg, map(eb.neg, xs)),
    lambda xs: dict(enumerate(xs)).values(), deque,
]  # fmt: skip


@pytest.mark.parametrize("reduce", REDUCTIONS, ids=lambda reduce: reduce.__name__)
def test_of_several(reduce):
    with eb.Graph(dtype="float64"):
        xs = [eb.input(row) for row in ROWS]
        for hold in HOLDERS:
            np.testing.assert_allclose(reduce(hold(xs)).value(), REDUCTIONS[reduce](ROWS, axis=0))


def test_pythons_sum_and_lists_of_numbers():
    with eb.Graph(dtype="float64"):
        xs = [eb.input(row) for row in ROWS]
        np.testing.assert_allclose(sum(x * 2 for x in xs).value(), 2 * ROWS.sum(0))
        np.testing.assert_allclose(eb.sum([1.0, xs[0][0], 2]).value(), 3 + ROWS[0, 0])
        np.testing.assert_allclose(eb.concatenate(x for x in xs).value(), ROWS.ravel())
        np.testing.assert_allclose(eb.stack(x for x in xs).value(), ROWS)


def test_empty_sums_like_something():
    W = eb.ParameterCollection().add_parameters((2, 3), init=1.0)
    with eb.Graph():
        x = eb.input([1.0, 2.0])
        for like, shape in ((x, (2,)), (W, (2, 3)), (x[0], ())):
            total = eb.sum([], like=like)
            assert total.shape == shape
            np.testing.assert_array_equal(total.value(), np.zeros(shape))
    with eb.Graph():
        x = eb.input([1.0, 2.0])
        children = [x * 2 for _ in range(0)]
        loss = eb.sum(eb.sum((c for c in children), like=x) + x)
        np.testing.assert_array_equal(eb.sum([x, x], like=x).value(), [2, 4])
        loss.backward()
        np.testing.assert_array_equal(x.gradient(), [1, 1])


def test_axes():
    with eb.Graph(dtype="float64"):
        x = eb.input(ROWS)
        for axis in (np.int64(1), 1, (1,), [1], np.array([1])):
            np.testing.assert_allclose(eb.sum(x, axis).value(), ROWS.sum(1))


@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_the_deviation_of_very_large_and_very_small_numbers(cells):
    row = np.array([3.0, 1.0, 0.0, -2.0])
    for size in (1e-37, 1e-30, 1e-20, 1.0, 1e18, 3e19, 1e30, 8e37):
        x = (size * row).astype(np.float32)
        exact = x.astype(np.float64)
        spread = exact.std()
        with eb.Graph():
            given = eb.input(x)
            y = (eb.cell(lambda x: eb.std(x * 1)) if cells else eb.std)(given)
        y.backward()
        np.testing.assert_allclose(y.value(), spread, rtol=1e-6, err_msg=f"{size}")
        slope = (exact - exact.mean()) / (4 * spread)
        np.testing.assert_allclose(given.gradient(), slope, rtol=1e-5, err_msg=f"{size}")


@pytest.mark.parametrize(("values", "want"), [([-1e300, -np.inf], [1, 0]), ([-np.inf, -np.inf], [0, 0])])
@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_gradients_of_logsumexp_of_a_list_far_below_float32s_range(values, want, cells):
    total = eb.cell(lambda a, b: eb.logsumexp([a, b])) if cells else lambda a, b: eb.logsumexp([a, b])
    with eb.Graph(policy="sufficient", dtype="float64"):
        xs = [eb.scalar(value) for value in values]
        total(*xs).backward()
    assert [x.gradient() for x in xs] == want
