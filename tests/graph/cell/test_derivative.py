"""Derivatives of bodies: what flows where it was read from, what is saved, what is left to one product."""

import numpy as np
import pytest

import edbatch as eb
from tests.gradients import check_parameters

DIM = 6


def overlapping(x):
    return eb.sum(x[:4] * x[2:]) + eb.sum(x[1:3]) + eb.sum(x[1:3] * x[3])


def gaps(x):
    return eb.sum(eb.square(x[1:3])) + eb.sum(x[4:5] * x[1:2])


def split_of_a_split(x):
    a, b = eb.split(x, 2)
    (c, d), e = eb.split(a, [1, 2]), b[::-1]
    return eb.sum(c * d) + eb.sum(e * b * a)


def matrices(x):
    y = eb.reshape(x, (2, 3))
    return eb.sum(y.T @ y) + eb.sum(y[:, 1] * y[0, :2]) + eb.sum(eb.flip(y, 1)[1] * eb.transpose(y)[2, 0])


def single_entries(x):
    return x[0] * x[5] + eb.pick(x, 2) * x[2] + eb.stack([x[0], x[1]])[1]


def whole_and_parts(x):
    return eb.sum(x * x) * x[2] + eb.sum(eb.concatenate([x[3:], x, x[:1]]) ** 3)


def of_lists(x):
    a, b, c = eb.split(x, 3)
    lists = [eb.sum, eb.mean, eb.maximum, eb.minimum, eb.logsumexp]
    return eb.sum([eb.sum(reduce([a, b, c, b]) * a) for reduce in lists])


def stopped(x):
    return eb.sum(eb.stop_gradient(x)[:3] * x[3:] + eb.stop_gradient(x * x)[:3])


FUNCTIONS = [
    overlapping, gaps, split_of_a_split, matrices, single_entries, whole_and_parts, of_lists, stopped,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("as_cell", [True, False])
def test_gradients_flow_to_where_was_read(function, as_cell):
    """In the middle of a cell, of a product with a parameter; and op by op."""
    random = np.random.default_rng(1)
    model = eb.ParameterCollection(dtype="float64")
    W = model.add_parameters((DIM, 2), init=random.standard_normal((DIM, 2)))
    inputs = random.standard_normal((3, 2))
    fixed = {}

    def body(x):
        return function(W @ x)

    body = eb.cell(body) if as_cell else body

    def loss():
        with eb.Graph(policy="sufficient", dtype="float64"):
            if function is stopped and fixed:  # finite differences see no stop: what is stopped stays as it was
                return sum(
                    eb.sum(eb.input(y[:3]) * (W @ eb.input(x))[3:]) for y, x in zip(fixed["y"], inputs, strict=True)
                )
            return eb.sum([body(eb.input(x)) for x in inputs])

    for options in ({}, {"recompute": True}):
        fixed.clear()
        model.zero_grad()
        with eb.options(**options):
            loss().backward()
        fixed["y"] = [W.value() @ x for x in inputs]
        check_parameters(model, lambda: loss().value(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("turned", [False, True])
def test_a_parameter_that_is_read_whole_and_by_entries(turned):
    model = eb.ParameterCollection(seed=0)
    p = model.add_parameters((4,))

    @eb.cell
    def both(x):
        w = eb.parameter(p)
        whole, entry = (eb.sum(w * x), eb.pick(w, 3)) if turned else (eb.pick(w, 3), eb.sum(w * x))
        return whole, entry, w

    with eb.Graph():
        first, second, w = both(eb.ones(4))
        (first + second + eb.sum(w)).backward()
    assert p.grad().tolist() == [2, 2, 2, 3]


def largest_of_a_list(x, y):
    a = eb.softmax(x) * eb.exp(y)
    return a * 2, eb.max([a, y * 0.1, a * 0.5])


def smallest_of_a_list(x, y):
    a = eb.exp(x)
    return eb.min([a, eb.square(y)]), eb.sum(a)


def the_larger(x, y):
    a = eb.tanh(x * y)
    return eb.maximum(a, eb.sin(y)), eb.minimum(a, x)


def largest_entry(x, y):
    a = eb.exp(x) * eb.sigmoid(y)
    return eb.max(a), eb.min(a, keepdims=True), a


def equal_to_the_largest(x, y):
    a = eb.softmax(x * y)
    m = eb.max(a)
    return m, eb.sum(eb.where(eb.equal(a, m), x * y, 0)), eb.sum(eb.where(a >= m, y * y, y))


def by_index(x, y):
    a = eb.softmax(x) * y
    return eb.max(a), eb.gather(y * x, eb.reshape(eb.argmax(a), (1,)), axis=0)


def pooled(x, y):
    a = eb.reshape(eb.exp(x) * eb.tanh(y), (1, 6))
    return eb.max_pool1d(a, 3, 1, 1), eb.sum(eb.k_max_pool(a[0], 2))


COMPARING = [
    largest_of_a_list, smallest_of_a_list, the_larger, largest_entry, equal_to_the_largest, by_index, pooled,
]  # fmt: skip


@pytest.mark.parametrize("function", COMPARING)
@pytest.mark.parametrize("recompute", [False, True])
def test_what_is_compared_is_given_or_computed_again_as_one(function, recompute):
    """Another kernel's results differ in the last bit: what was equal must not become different by that."""
    random = np.random.default_rng(5)
    data = random.standard_normal((200, 2, 6)).astype(np.float32)

    def gradients(f, dtype):
        with eb.options(recompute=recompute), eb.Graph(policy="sufficient", dtype=dtype):
            xs = [[eb.input(x) for x in pair] for pair in data]
            losses = [y * (1.0 + at) if not y.shape else eb.sum(y) for x in xs for at, y in enumerate(f(*x))]
            eb.sum(losses).backward()
            return np.array([[x.gradient() for x in pair] for pair in xs])

    found, wanted = gradients(eb.cell(function), "float32"), gradients(function, "float64")
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
