"""The gradient of an expression is the same with and without cells, whatever a cell returns and does with it."""

import numpy as np
import pytest

import edbatch as eb

RESULTS = {}


def results(function):
    RESULTS[function.__name__] = function
    return function


@results
def in_a_list(x, m):
    h = eb.tanh(x)
    return h, eb.sum([h, h])


@results
def another_shape_of_what_is_transposed(x, m):
    """Which memory may have to copy, or not, as it happens to lie."""
    h = eb.tanh(eb.stack([x, eb.exp(x)]))
    return h, h.T.reshape(-1), h.T.reshape(-1), eb.square(h[:, :1].reshape(-1))


@results
def equal_results(x, m):
    h, g = eb.tanh(x), eb.tanh(x)
    return h, g, h * 2, g * 3


@results
def what_is_stopped(x, m):
    c = eb.stop_gradient(eb.tanh(x))
    return c * x, c, c[0:2], eb.stop_gradient(x)


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0)
    for name, shape in {"W": (4, 4), "V": (4, 4), "U": (4, 8), "b": 4}.items():
        made.add_parameters(shape, name=name)
    made["b"].set_value([0.1, 0.2, 0.3, 0.4])
    made.add_lookup_parameters((5, 4), name="E")
    return made


def weighted(expressions):
    random = np.random.default_rng(1)
    return eb.sum([eb.sum(x * eb.input(random.uniform(0.5, 1.5, x.shape))) for x in expressions])


def compare(got, want):
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"gradient {number}")


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_what_a_cell_returns(function, model):
    def gradients(call, policy):
        with eb.Graph(policy=policy):
            x = eb.input([0.3, -0.2, 0.9, 0.6])
            y = eb.tanh(x)
            found = [*call(y), *call(eb.exp(y))]
            first = found[0]
            part = first[1:3] if first.ndim == 1 else first[0]
            loss = weighted(found) + eb.sum(eb.exp(first)) + eb.sum(first)
        loss.backward()
        return [z.gradient() for z in (*found, y, x, part)]

    want = gradients(lambda x: function(x, model), "none")
    for policy in ("sufficient", "none"):
        compare(gradients(eb.cell(lambda x: function(x, model)), policy), want)


def recurrent(h, x, i, m):
    e, p = m["W"] @ eb.lookup(m["E"], i), m["V"] @ x
    n = eb.tanh(e + p + m["U"] @ eb.concatenate([h, x]))
    r = eb.tanh(m["V"] @ n)
    return n, e, p, r, eb.tanh(n), n[0:2] * n[2:4], eb.tanh(e), e[1:3] * 2, r * r


def test_what_a_cell_returns_that_is_split(model):
    def gradients(call, policy):
        with eb.Graph(policy=policy):
            h, x = eb.zeros(4), eb.input([0.1, 0.2, -0.3, 0.4])
            found = []
            for number in range(4):
                results = call(h, x * (0.1 * number + 0.4), number % 3)
                h = results[0]
                found += results
            weighted(found).backward()
            return [z.gradient() for z in (*found, x, *(z[0] for z in found))]

    @eb.cell
    def call(h, x, i: int):
        return recurrent(h, x, i, model)

    want = gradients(lambda h, x, i: recurrent(h, x, i, model), "none")
    for options in ({}, {"split": False}, {"recompute": True}):
        with eb.options(**options):
            compare(gradients(call, "sufficient"), want)


def test_each_call_has_its_own_gradient_of_what_equal_lookups_share():
    """The product of a look-up is computed once for equal words; see `runtime.split`."""
    model = eb.ParameterCollection(seed=0)
    W, table = model.add_parameters((256, 256)), model.add_lookup_parameters((6, 256))

    def leaf(x, i: int):
        product = W @ eb.lookup(table, i)
        return product, eb.tanh(product + x), eb.sum(product[3:7])

    def gradients(call):
        with eb.Graph(policy="sufficient"):
            found = [call(eb.input(np.full(256, 0.01 * number)), number % 2) for number in range(8)]
            loss = eb.sum([eb.sum(eb.exp(p)) * k + eb.sum(q) + r for k, (p, q, r) in enumerate(found)])
        loss.backward()
        return [x.gradient() for results in found for x in results]

    want = gradients(leaf)
    compare(gradients(eb.cell(leaf)), want)


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("called", [lambda f: f, eb.cell])
def test_what_is_recorded_after_the_way_back(called, runs):
    """It is what it shows, too; what is computed then has no gradient."""
    shown = called(lambda x: (x, x.T.reshape(-1), eb.exp(x)))
    with eb.Graph():
        x = eb.input([[1.0, 2.0], [3.0, 4.0]])
        eb.sum(x * np.array([[1.0, 10.0], [100.0, 1000.0]])).backward()
        same, flat, new = shown(x)
        if runs:
            new.value()
        assert same.gradient().tolist() == x.gradient().tolist() == [[1, 10], [100, 1000]]
        assert flat.gradient().tolist() == [1, 100, 10, 1000]
        assert not new.gradient().any()
