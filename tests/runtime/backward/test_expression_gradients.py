"""The gradient of an expression is the same with and without cells, whatever a cell returns and does with it."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.ops.elementwise import greater

RESULTS = {}


def results(function):
    RESULTS[function.__name__] = function
    return function


@results
def in_a_list(x, m):
    h = eb.tanh(x)
    return h, eb.sum([h, h])


@results
def slices_of_a_result(x, m):
    h = eb.tanh(x)
    return h, h[0:2] * h[2:4]


@results
def another_shape_of_what_is_transposed(x, m):
    """Which memory may have to copy, or not, as it happens to lie."""
    h = eb.tanh(eb.stack([x, eb.exp(x)]))
    return h, h.T.reshape(-1), h.T.reshape(-1), eb.square(h[:, :1].reshape(-1))


@results
def equal_nodes(x, m):
    h, g = eb.tanh(x), eb.tanh(x)
    return h, g * g


@results
def equal_results(x, m):
    h, g = eb.tanh(x), eb.tanh(x)
    return h, g, h * 2, g * 3


@results
def a_product_and_its_bias(x, m):
    h, g = m["W"] @ x, m["W"] @ x + m["b"]
    return h, g * g, m["W"] @ x


@results
def equal_affines(x, m):
    h, g = (eb.affine(m["W"], x, m["b"]) for _ in range(2))
    return h, g * g, eb.exp(h)


@results
def an_argument(x, m):
    return x, x * 2, x[1:3]


@results
def the_same_twice(x, m):
    h = eb.exp(x)
    return h, h, h[1:], h * h


@results
def a_concatenation(x, m):
    h = eb.exp(x)
    c = eb.concatenate([h, x])
    return c, m["U"] @ c, eb.tanh(c[0:4]), eb.tanh(h), eb.tanh(x), h


@results
def a_constant(x, m):
    c = eb.ones(4) * 2
    return x * c, c, c * c


@results
def what_is_stopped(x, m):
    c = eb.stop_gradient(eb.tanh(x))
    return c * x, c, c[0:2], eb.stop_gradient(x)


@results
def what_is_only_returned(x, m):
    return eb.stop_gradient(eb.tanh(x)), eb.scale_gradient(eb.exp(x), 2), eb.square(x)[1:3], eb.sum(x), x * 2


@results
def gates(x, m):
    g = eb.sigmoid(m["W"] @ x + m["b"])
    i, o = eb.split(g, 2)
    return i * o, g, eb.tanh(i)


@results
def gates_of_a_product(x, m):
    g = m["W"] @ x
    a, c = eb.tanh(g[0:2]), eb.tanh(g[2:4])
    return a * c, a, g


@results
def a_step_function(x, m):
    s = greater(x, 0.5)
    return s * x, s


@results
def transposed(x, m):
    return eb.reshape(eb.tanh(x), (2, 2)).T, eb.reshape(eb.tanh(x), (2, 2))


OPTIONS = [{}, {"compile": "plain"}, {"split": False}]


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
    for options in OPTIONS:
        with eb.options(**options):
            for policy in ("sufficient", "none"):
                compare(gradients(eb.cell(lambda x: function(x, model)), policy), want)


def recurrent(h, x, i, m):
    e, p = m["W"] @ eb.lookup(m["E"], i), m["V"] @ x
    n = eb.tanh(e + p + m["U"] @ eb.concatenate([h, x]))
    r = eb.tanh(m["V"] @ n)
    return n, e, p, r, eb.tanh(n), n[0:2] * n[2:4], eb.tanh(e), e[1:3] * 2, r * r


def with_a_concatenation(h, x, i, m):
    hx = eb.concatenate([h, x])
    n = eb.tanh(m["U"] @ hx + m["W"] @ x)
    r = eb.tanh(m["V"] @ n)
    return n, hx, r, m["V"] @ n, m["W"] @ x, (m["W"] @ x) * 2, r[0:2], eb.stop_gradient(n), n


@pytest.mark.parametrize("function", [recurrent, with_a_concatenation])
def test_what_a_cell_returns_that_is_split(function, model):
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

    want = gradients(lambda h, x, i: function(h, x, i, model), "none")
    for options in ({}, {"split": False}, {"compile": "plain"}, {"recompute": True}):
        with eb.options(**options):
            for policy in ("sufficient", "none"):

                @eb.cell
                def call(h, x, i: int):
                    return function(h, x, i, model)

                compare(gradients(call, policy), want)


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


def test_what_depends_on_no_input():
    def constant():
        return eb.exp(eb.ones(3))

    def given():
        x = eb.input([1.0, 2.0])
        return x, x * 2, eb.tanh(x * 2)

    for call in (constant, eb.cell(constant)):
        with eb.Graph():
            y = call()
            loss = eb.sum(y * 3)
        loss.backward()
        np.testing.assert_allclose(y.gradient(), np.full(3, 3))
    for call in (given, eb.cell(given)):
        with eb.Graph():
            x, twice, y = call()
            loss = eb.sum(x) + eb.sum(twice * 5) + eb.sum(y)
        loss.backward()
        slope = 1 - np.tanh([2.0, 4.0]) ** 2
        compare([x.gradient(), twice.gradient(), y.gradient()], [11 + 2 * slope, np.full(2, 5.0), np.ones(2)])


@pytest.mark.parametrize("called", [lambda f: f, eb.cell])
def test_views_of_what_is_transposed(called):
    """It is what it shows, whether memory copies it or not, and a call of a cell makes no difference."""
    flat = called(lambda x: x.reshape(-1))
    with eb.Graph():
        x = eb.input([[1.0, 2.0], [3.0, 4.0]])
        y = flat(x.T)
        z = y
        for _ in range(10):  # of views of views, too
            z = eb.flip(z)
        loss = eb.sum(y * np.array([1.0, 10.0, 100.0, 1000.0])) + eb.sum(eb.square(x)) + z[1]
    loss.backward()
    assert y.gradient().tolist() == z.gradient().tolist() == [3, 17, 104, 1008]
    assert x.gradient().tolist() == [[3, 104], [17, 1008]]


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
