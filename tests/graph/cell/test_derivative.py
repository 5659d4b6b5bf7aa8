"""Derivatives of bodies: of parameters that are read whole and by entries, and of what is compared."""

import numpy as np
import pytest

import edbatch as eb


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
