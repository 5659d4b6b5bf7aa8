"""Inverses, determinants and what is projected on probabilities: against NumPy and finite differences in float64."""

import numpy as np
import pytest

import edbatch.dynet as dy


@pytest.fixture(autouse=True)
def graph():
    dy.renew_cg()


def matrices():
    random = np.random.default_rng(4)
    yield np.array([[2.0]])
    yield np.array([[0.0, 1.0], [1.0, 0.0]])
    yield np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
    for n in (5, 12):
        yield random.normal(size=(n, n))


@pytest.mark.parametrize("array", list(matrices()))
class TestMatrices:
    def test_inverse(self, array):
        x = dy.inputTensor(array)
        y = dy.inverse(x)
        weights = np.random.default_rng(1).normal(size=array.shape)
        dy.sum_elems(dy.cmult(y, dy.inputTensor(weights))).backward()
        expected = np.linalg.inv(array)
        np.testing.assert_allclose(y.npvalue(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(x.gradient(), -expected.T @ weights @ expected.T, rtol=1e-3, atol=1e-4)

    def test_logdet(self, array):
        x = dy.inputTensor(array)
        y = dy.logdet(x)
        y.backward()
        assert y.value() == pytest.approx(np.linalg.slogdet(array)[1], rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(x.gradient(), np.linalg.inv(array).T, rtol=1e-4, atol=1e-5)


def test_mini_batches():
    arrays = np.random.default_rng(2).normal(size=(4, 4, 3)) + 2 * np.eye(4)[:, :, None]
    xs = dy.inputTensor(arrays, batched=True)
    expected = np.linalg.inv(np.moveaxis(arrays, -1, 0))
    np.testing.assert_allclose(dy.inverse(xs).npvalue(), np.moveaxis(expected, 0, -1), rtol=1e-4, atol=1e-5)
    logs = [np.linalg.slogdet(arrays[:, :, k])[1] for k in range(3)]
    np.testing.assert_allclose(dy.logdet(xs).npvalue().reshape(-1), logs, rtol=1e-4)


def test_only_of_square_matrices():
    for call in (dy.inverse, dy.logdet):
        with pytest.raises(ValueError, match="square"):
            call(dy.inputTensor(np.ones((2, 3))))


def project(z):
    """The nearest probabilities, by bisection of what is subtracted."""
    low, high = z.max() - 1, z.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(z - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(z - low, 0)


def limited(z, u):
    """The nearest probabilities that are nowhere above u, by bisection of the factor."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(u, middle * np.exp(z)).sum() < 1 else (low, middle)
    return np.minimum(u, low * np.exp(z))


def slopes(f, x, weights, step=1e-6):
    return np.array([weights @ (f(x + e) - f(x - e)) / (2 * step) for e in np.eye(len(x)) * step])


VECTORS = [np.array([0.5, -1.25, 2.0]), np.array([0.3, 0.1, 0.25, -0.4]), np.random.default_rng(3).normal(size=9)]


@pytest.mark.parametrize("z", VECTORS)
class TestProbabilities:
    def test_sparsemax(self, z):
        x, weights = dy.inputVector(z), np.cos(np.arange(len(z)))
        y = dy.sparsemax(x)
        dy.dot_product(y, dy.inputVector(weights)).backward()
        np.testing.assert_allclose(y.npvalue(), project(z), atol=1e-6)
        np.testing.assert_allclose(x.gradient(), slopes(project, z, weights), atol=1e-5)

    def test_sparsemax_loss(self, z):
        x = dy.inputVector(z)
        y = dy.sparsemax_loss(x, [0, 2])
        y.backward()
        q = np.zeros(len(z))
        q[[0, 2]] = 0.5
        p = project(z)
        held = p > 0
        tau = (z[held].sum() - 1) / held.sum()
        assert y.value() == pytest.approx(-q @ z + 0.5 * (z[held] ** 2 - tau**2).sum() + 0.5 * q @ q, abs=1e-6)
        np.testing.assert_allclose(x.gradient(), p - q, atol=1e-6)

    def test_constrained_softmax(self, z):
        u = 1.2 / len(z) + 0.1 * np.sin(np.arange(len(z)))
        x, y, weights = dy.inputVector(z), dy.inputVector(u), np.cos(np.arange(len(z)))
        found = dy.constrained_softmax(x, y)
        dy.dot_product(found, dy.inputVector(weights)).backward()
        np.testing.assert_allclose(found.npvalue(), limited(z, u), atol=1e-6)
        np.testing.assert_allclose(x.gradient(), slopes(lambda x: limited(x, u), z, weights), atol=1e-4)
        np.testing.assert_allclose(y.gradient(), slopes(lambda y: limited(z, y), u, weights), atol=1e-4)


def test_sparsemax_of_mini_batches():
    arrays = np.random.default_rng(5).normal(size=(4, 3))
    found = dy.sparsemax(dy.inputTensor(arrays, batched=True)).npvalue()
    np.testing.assert_allclose(found.T, [project(z) for z in arrays.T], atol=1e-6)
