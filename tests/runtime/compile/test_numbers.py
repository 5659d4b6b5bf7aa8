"""Numbers that are attributes of ops, or keywords of cells: kernels are given them, and are the same for all."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.kernels.cpu import machine_code
from edbatch.kernels.language import cuda

X = np.array([-2.0, -0.25, 0.5, 1.5], np.float32)


@eb.cell
def scaled(x, *, k: float):
    return eb.leaky_relu(x * k - k, slope=k) * 2.5


@eb.cell
def picked(x, *, k: int):
    return eb.pick(eb.tanh(x), k)


def entry(number):
    return int(10 * number) % 4


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def normalized(x, number):
    return (x - x.mean()) / np.sqrt(x.var() + number)


# By name: the op of an expression and a number, and NumPy's.
OPS = {
    "leaky_relu": (lambda x, n: eb.leaky_relu(x, slope=n), lambda x, n: np.where(x > 0, x, n * x)),
    "clip": (lambda x, n: eb.clip(x, -n, n), lambda x, n: np.clip(x, -n, n)),
    "layer_norm": (lambda x, n: eb.layer_norm(x, eb.ones(4), eb.zeros(4), epsilon=n), normalized),
    "huber": (
        lambda x, n: eb.huber(x, eb.zeros(4), delta=n),
        lambda x, n: np.where(np.abs(x) <= n, x * x / 2, n * (np.abs(x) - n / 2)).sum(),
    ),
    "attention": (
        lambda x, n: eb.attention(x, [x, x * 0.5], [x, x + 1], scale=n),
        lambda x, n: softmax(n * np.array([x @ x, x @ x / 2])) @ np.array([x, x + 1]),
    ),
    "top_k": (lambda x, n: eb.top_k(x, 1 + entry(n))[0], lambda x, n: np.sort(x)[::-1][: 1 + entry(n)]),
    "a cell's number": (
        lambda x, n: scaled(x, k=n),
        lambda x, n: 2.5 * np.where(x * n > n, x * n - n, n * (x * n - n)),
    ),
    "a cell's integer": (lambda x, n: picked(x, k=entry(n)), lambda x, n: np.tanh(x)[entry(n)]),
}


def check(op, numbers, parameter):
    """Values of an op of several numbers in one graph, forward and backward."""
    call, expected = OPS[op]
    with eb.Graph(policy="sufficient"):
        found = [call(parameter + 0.0, number) for number in numbers]
        loss = eb.sum([x.sum() for x in found])
    for x, number in zip(found, numbers, strict=True):
        np.testing.assert_allclose(x.value(), expected(X, number), rtol=2e-5, atol=2e-6)
    loss.backward()


@pytest.mark.filterwarnings("ignore:cell scaled has been traced")
@pytest.mark.parametrize("op", OPS)
def test_other_numbers_need_no_other_kernels(op, monkeypatch):
    parameter = eb.ParameterCollection(seed=0).add_parameters(4, init=X, name="x")
    check(op, [0.3, 0.41], parameter)
    check(op, [0.3], parameter)
    written = []
    for module, name in ((machine_code, "address_of_text"), (cuda, "source_of")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, real=real: written.append(given) or real(*given))
    for number in (0.13, 0.17, 0.22):
        check(op, [number, number + 0.25], parameter)
    assert written == []


def test_zeros_of_both_signs_and_what_is_not_finite_are_told_apart():
    @eb.cell
    def divided(x, *, k: float):
        return eb.tanh(x) * 0 + 1 / (x * 0 + k)

    for numbers in ([0.0, -0.0], [-0.0, 0.0, np.inf, np.nan]):
        with eb.Graph(policy="sufficient"):
            found = [divided(eb.ones(2), k=k) for k in numbers]
        for x, k in zip(found, numbers, strict=True):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(x.value(), 1 / (np.zeros(2, np.float32) + np.float32(k)))
