"""The gradient of an expression is the same with and without cells that are split, and of what comes after."""

import numpy as np
import pytest

import edbatch as eb


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0)
    for name, shape in {"W": (4, 4), "V": (4, 4), "U": (4, 8), "b": 4}.items():
        made.add_parameters(shape, name=name)
    made["b"].set_value([0.1, 0.2, 0.3, 0.4])
    made.add_lookup_parameters((5, 4), name="E")
    return made


def compare(got, want):
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"gradient {number}")


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


@pytest.mark.parametrize(
    "shown",
    [
        lambda y: y, lambda y: y[:, 1:], lambda y: eb.reshape(y, -1), lambda y: eb.reshape(y[:, 1:], -1),
        lambda y: eb.reshape(eb.reshape(y[:, 1:], -1)[1:], (1, -1)), lambda y: eb.reshape(y.T, -1),
    ],
)  # fmt: skip
def test_what_a_cell_returns_of_overlapping_windows(shown):
    """Each entry has a gradient of its own, however a copy shows it, as without the cell."""
    x = np.arange(9.0).reshape(1, 3, 3)
    function = lambda x: shown(eb.unfold(x, 2, padding=1))  # noqa: E731
    for made in (eb.cell(function), function):
        with eb.Graph(dtype="float64"):
            y = made(eb.input(x))
        given = np.arange(1.0, 1 + y.size).reshape(y.shape)
        y.backward(given)
        np.testing.assert_array_equal(y.gradient(), given)
