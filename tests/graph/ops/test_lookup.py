"""Look-ups in parameters that are no tables: any may be read by rows, wherever and however it lies."""

import numpy as np
import pytest

import edbatch as eb

SHAPES = [((5,), "float32"), ((5, 3), "float64"), ((1, 4), "float64"), ((5, 2, 3), "float64"), ((70, 40), "float32")]


def of_row(row):
    return eb.tanh(row) * 2.0


def made(shape, dtype="float64"):
    model = eb.ParameterCollection(seed=1, dtype=dtype)
    return model.add_parameters(shape, name="W", init=np.random.default_rng(1).normal(size=shape)), model


def ways(W):
    """What looks up several rows, one by one or together."""

    @eb.cell
    def cell(at: int):
        return of_row(eb.lookup(W, at))

    return {
        "alone": lambda rows: [of_row(eb.lookup(W, at)) for at in rows],
        "an array": lambda rows: list(of_row(eb.lookup(W, np.array(rows)))),
        "a cell": lambda rows: [cell(at) for at in rows],
        "a cell of an array": lambda rows: list(cell(np.array(rows))),
    }


@pytest.mark.parametrize(("shape", "dtype"), SHAPES)
@pytest.mark.parametrize("way", list(ways(None)))
def test_rows_and_gradients(way, shape, dtype):
    W, _ = made(shape, dtype)
    rows = [0, shape[0] - 1, 0, -1, shape[0] // 2, 0]
    array = W.value()
    off = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
    for times in (1, 2):
        with eb.Graph(dtype=dtype):
            found = ways(W)[way](rows)
            loss = eb.sum([eb.sum(x) for x in found])
        np.testing.assert_allclose(eb.forward(found), 2 * np.tanh(array[rows]), **off)
        loss.backward()
        expected = np.zeros(shape)
        np.add.at(expected, rows, 2 * (1 - np.tanh(array[rows]) ** 2))
        np.testing.assert_allclose(W.grad(), times * expected, **off)


@pytest.mark.parametrize("frozen", [(), ("V",), ("W",), ("V", "W")])
def test_beside_others_that_a_cell_has_stacked(frozen):
    W, model = made((5, 3))
    V = model.add_parameters((2, 3), name="V")
    for name in frozen:
        model[name].freeze()

    @eb.cell
    def products(x):
        return W @ x, V @ x

    @eb.cell
    def row(at: int):
        return eb.lookup(W, at) + eb.lookup(V, 1)

    x = np.array([1.0, -2.0, 0.5])
    with eb.Graph(dtype="float64"):
        a, b = products(x)
        loss = eb.sum(a) + eb.sum(b) + eb.sum(eb.square(row(4) + eb.lookup(W, 3)))
    y = W.value()[4] + V.value()[1] + W.value()[3]
    assert loss.value() == pytest.approx((W.value() @ x).sum() + (V.value() @ x).sum() + (y * y).sum())
    loss.backward()
    for parameter, picked in ((W, [3, 4]), (V, [1])):
        expected = np.tile(x, (len(parameter.value()), 1))
        expected[picked] += 2 * y
        np.testing.assert_allclose(parameter.grad(), expected * (parameter.name not in frozen), atol=1e-12)


def test_others_are_refused():
    W, model = made((5, 3))
    with eb.Graph(dtype="float64"):
        for wrong in (model.add_parameters((), init=1.0), eb.ones((5, 3)), np.ones((5, 3)), None):
            with pytest.raises(eb.EdBatchError, match="lookup: expected a parameter of at least one axis, got "):
                eb.lookup(wrong, 0)
        for index in (5, -6, np.array([0, 5])):
            with pytest.raises(eb.EdBatchError, match=r"lookup.*out of range for 5 entries"):
                eb.lookup(W, index)
        with pytest.raises(eb.EdBatchError, match=r"lookup.*expected an integer"):
            eb.lookup(W, [0, 1])
