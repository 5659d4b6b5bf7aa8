"""What a derivative computes again is what the forward run had, to the last bit: it shows where scores are large."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import OPS
from tests.arrays import on_host

N, LABEL = 5, 2
LARGE = [1e4, 1e6]


def softmax(z):
    powers = np.exp(z - z.max())
    return powers / powers.sum()


def weighted(p):
    """The gradient of Σ k · p[k] in what p is the softmax of."""
    k = np.arange(N)
    return p * (k - p @ k)


def above(z):
    """The scores that are too large, of other labels."""
    return (z - z[LABEL] + 1 > 0) * (1 - np.eye(N)[LABEL])


def z_parts(z):
    return [z[k : k + 1] for k in range(N)]


#: Of scores z: a loss, a loss of them as a list, and the gradient in z, in float64.
LOSSES = {
    "cross_entropy": (lambda z: eb.cross_entropy(z, LABEL), lambda z: softmax(z) - np.eye(N)[LABEL]),
    "smoothed": (lambda z: eb.cross_entropy(z, LABEL, 0.1), lambda z: softmax(z) - 0.9 * np.eye(N)[LABEL] - 0.1 / N),
    "distribution": (lambda z: eb.cross_entropy(z, np.full(N, 1 / N)), lambda z: softmax(z) - 1 / N),
    "log_softmax": (lambda z: -eb.log_softmax(z)[LABEL], lambda z: softmax(z) - np.eye(N)[LABEL]),
    "softmax": (lambda z: eb.dot(eb.softmax(z), np.arange(float(N))), lambda z: weighted(softmax(z))),
    "logsumexp": (eb.logsumexp, softmax),
    "logsumexp of a list": (lambda z: eb.logsumexp([z[k] for k in range(N)]), softmax),
    "softmax of a list": (
        lambda z: eb.sum([p * float(k) for k, p in enumerate(eb.softmax([z[k] for k in range(N)]))]),
        lambda z: weighted(softmax(z)),
    ),
    "attention": (
        lambda z: eb.attention(eb.ones(1), z_parts(z), [eb.ones(1) * float(k) for k in range(N)], scale=1.0)[0],
        lambda z: weighted(softmax(z)),
    ),
    "hinge": (
        lambda z: eb.hinge(z, LABEL),
        lambda z: above(z) - np.eye(N)[LABEL] * above(z).sum(),
    ),
    "max": (eb.max, lambda z: (z == z.max()) / (z == z.max()).sum()),
}  # fmt: skip


def op_by_op(loss, xs):
    return [loss(x) for x in xs]


def in_a_cell(loss, xs):
    cell = eb.cell(lambda x: loss(x))
    return [cell(x) for x in xs]


def read_before(loss, xs):
    """Values are read before anybody asks for gradients: then nothing is saved for these."""
    found = in_a_cell(loss, xs)
    eb.forward(found)
    return found


def scores(rng):
    """Some far apart, some a few units in the last place."""
    near = np.float32(1.1) + rng.integers(0, 8, (8, N)) * np.float32(2**-23)
    return np.concatenate([rng.normal(size=(8, N)), near]).astype(np.float32)


@pytest.mark.parametrize("way", [op_by_op, in_a_cell, read_before])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_large_scores_are_those_of_their_rounded_values(name, way):
    loss, gradient = LOSSES[name]
    X = scores(np.random.default_rng(0))
    for scale in LARGE:
        with eb.Graph():
            xs = [eb.input(x) for x in X]
            eb.sum(way(lambda x, scale=scale: loss(x * scale), xs)).backward()
        for x, given in zip(X, xs, strict=True):
            z = (x * np.float32(scale)).astype(np.float64)
            np.testing.assert_allclose(on_host(given.gradient()) / scale, gradient(z), rtol=0, atol=2e-6)


UNARY = sorted(
    name for name, op in OPS.items()
    if op.elementwise and hasattr(eb, name) and all(len(s.shapes) == 1 and not s.attributes for s in op.samples)
)  # fmt: skip
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power"]
SOME = {"exp", "tanh", "sigmoid", "multiply", "divide", "maximum"}


def losses(z):
    return eb.logsumexp(z, 0) + eb.cross_entropy(z, LABEL) + eb.dot(eb.softmax(z), np.arange(float(N)))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in SOME)) for name in UNARY + BINARY]
)
def test_cells_have_the_gradients_of_the_same_op_by_op(name):
    """Of scores that are a function of the table times a large number, less another product."""
    function, given = getattr(eb, name), 1 if name in UNARY else 2

    def loss(x, y):
        return losses(function(*(x, y)[:given]) * 3e4 - y * 2e4)

    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 2, (16, 2, N)).astype(np.float32)
    X[::2] = X[::2, :, :1] + rng.integers(0, 2, (8, 2, N)) * np.float32(2**-22)  # so that probabilities are between
    found = []
    for called in (loss, eb.cell(lambda x, y: loss(x, y))):
        with eb.Graph():
            xs, ys = eb.array(X[:, 0]), eb.array(X[:, 1])
            eb.sum(called(xs, ys)).backward()
        found.append((on_host(xs.gradient()), on_host(ys.gradient())))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other / 1e4, one / 1e4, rtol=2e-5, atol=2e-6)
