"""Inputs, constants, random numbers, and what drops entries."""

import numpy as np
import pytest

import edbatch.dynet as dy


@pytest.fixture(autouse=True)
def seed():
    dy.reset_random_seed(3)


class TestArrays:
    def test_sparse_ones(self):
        x = dy.sparse_inputTensor([[0, 1], [1, 2]], [3.0, 4.0], (2, 3))
        assert x.value().tolist() == [[0, 3, 0], [0, 0, 4]]
        x = dy.sparse_inputTensor([[0, 1], [1, 2]], [3.0, 4.0], (2, 3), defval=-1)
        assert x.value().tolist() == [[-1, 3, -1], [-1, -1, 4]]
        x = dy.sparse_inputTensor([[0, 1], [1, 1]], [3.0, 4.0], (2, 2), batched=True)
        assert (x.dim(), x.npvalue().tolist()) == (((2,), 2), [[0, 3], [0, 4]])


@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize(
    ("make", "mean", "std"),
    [
        (lambda n, k: dy.random_normal((n, 2), batch_size=k), 0, 1),
        (lambda n, k: dy.random_normal((n, 2), 3.0, 2.0, batch_size=k), 3, 2),
        (lambda n, k: dy.random_uniform((n, 2), -1, 3, batch_size=k), 1, 4 / np.sqrt(12)),
        (lambda n, k: dy.random_bernoulli((n, 2), 0.25, 4.0, batch_size=k), 1, np.sqrt(3)),
        (lambda n, k: dy.random_gumbel((n, 2), batch_size=k), 0.5772, np.pi / np.sqrt(6)),
        (lambda n, k: dy.noise(dy.zeros((n, 2), batch_size=k), 0.5), 0, 0.5),
        (lambda n, k: dy.dropout(dy.ones((n, 2), batch_size=k), 0.25), 1, np.sqrt(1 / 3)),
    ],
)
def test_random_numbers(make, mean, std, batch_size):
    x = make(5000, batch_size)
    assert x.dim() == ((5000, 2), batch_size)
    values = x.npvalue()
    assert values.mean() == pytest.approx(mean, abs=0.06 * max(1, std))
    assert values.std() == pytest.approx(std, rel=0.05)
    if batch_size > 1:
        assert not np.array_equal(values[..., 0], values[..., 1])


class TestDropping:
    def test_along_an_axis(self):
        for d in (0, 1):
            values = dy.dropout_dim(dy.ones((40, 50)), d, 0.5).value()
            assert set(np.unique(values)) == {0.0, 2.0}
            assert (values == values.take([0], d)).all()

    def test_all_or_nothing(self):
        for drop in (dy.dropout, lambda x, p: dy.dropout_dim(x, 0, p)):
            assert drop(dy.ones(2), 0.0).value() == [1.0, 1.0]
            assert drop(dy.ones(2), 1.0).value() == [0.0, 0.0]


def test_seeds():
    def drawn():
        dy.reset_random_seed(5)
        dy.renew_cg()
        W = dy.ParameterCollection().add_parameters((3, 3))
        return W.as_array().tolist(), dy.random_normal(3).value(), dy.dropout(dy.ones(20), 0.5).value()

    assert drawn() == drawn()
