"""Backward through whole graphs: any policy equals unbatched equals finite differences; growing graphs; errors."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host


@pytest.fixture
def model():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    model.add_parameters((3, 2), name="W")
    model.add_lookup_parameters((5, 2), name="table", init="glorot")
    return model


@eb.cell
def squared(W, x):
    return eb.sum(eb.square(W @ x))


@eb.cell
def squared_beside(W, x):
    return eb.sum(eb.square(W @ eb.concatenate([x, x])))


def test_gradients_add_up_over_calls_and_graphs(model):
    W, expected = model["W"], 0
    for number in range(3):
        x = np.array([1.0, number])
        with eb.Graph(policy="sufficient", dtype="float64"):
            loss, other = squared(W, eb.input(x)), eb.sum(W @ eb.input(x))
        loss.backward()
        expected = expected + 2 * np.outer(W.value() @ x, x)
        other.backward()
        other.backward()
        expected = expected + 2 * np.outer(np.ones(3), x)
    np.testing.assert_allclose(on_host(W.grad()), expected, rtol=1e-12)
    model.zero_grad()
    loss.backward()  # the graph is still there
    np.testing.assert_allclose(on_host(W.grad()), 2 * np.outer(W.value() @ x, x), rtol=1e-12)


def test_gradients_after_the_graph_grew(model):
    """What was computed stays, though the values' arenas have moved; gradients of inputs are computed late."""
    W = model["W"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.input([1.0, 2.0])
        y = W @ x
        loss = eb.sum(eb.square(y))
        loss.backward()
        want = y.gradient()
        later = [eb.sum(W @ eb.input([float(i), 1.0]) * y) for i in range(3000)]
        eb.forward(later)
        np.testing.assert_array_equal(y.gradient(), want)
        np.testing.assert_allclose(x.gradient(), W.value().T @ want)
        assert later[5].gradient() == 0
        np.testing.assert_array_equal(y.gradient(), want)


def test_table_gradients_are_sparse(model):
    table = model["table"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum([eb.sum(eb.square(table[i])) for i in (3, 1, 3, -1)])
    loss.backward()
    rows, values = table.sparse_grad()
    np.testing.assert_array_equal(rows, [1, 3, 4])
    np.testing.assert_allclose(on_host(values), np.array([[2.0], [4.0], [2.0]]) * table.value()[rows])


def test_what_is_not_reached_does_not_matter(model):
    """A NaN in the same batch, off the way from the loss, in what is saved and in what is computed again."""
    W = model.add_parameters((3, 4), name="wide")
    for options in ({}, {"recompute": True}, {"cells": False}):
        for number in (3, 1):
            model.zero_grad()
            xs = [np.full(2, np.nan)] * number + [np.array([1.0, 2.0])] + [np.full(2, np.inf)] * number
            with eb.options(**options), eb.Graph(policy="sufficient", dtype="float64"):
                out = [squared_beside(W, eb.input(x)) for x in xs]
                lists = [eb.logsumexp([y, y]) for y in out]
                eb.logsumexp([out[0], out[number]])
                with np.errstate(invalid="ignore"):
                    lists[number].backward()
            x = [1, 2, 1, 2]
            np.testing.assert_allclose(on_host(W.grad()), 2 * np.outer(W.value() @ x, x))


LOST = {
    "stopped": lambda W, x: eb.sum(eb.stop_gradient(W @ x) * x),
    "stopped at the end": lambda W, x: eb.stop_gradient(eb.sum(W @ x)),
    "stopped at the beginning": lambda W, x: eb.sum(eb.stop_gradient(eb.parameter(W))[0] * x),
    "read": lambda W, x: eb.scalar(float(eb.sum(W @ x))) * eb.sum(x),
    "another expression": lambda W, x: (eb.sum(W @ x), eb.sum(x))[1],
}


@pytest.mark.parametrize("kind", LOST)
def test_a_way_back_that_leads_to_no_parameter(kind):
    W = eb.ParameterCollection().add_parameters((2, 2), init=1.0)
    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0])
        loss = LOST[kind](W, x)
    with pytest.warns(eb.EdBatchWarning, match="backward: no parameter got a gradient, though this graph") as caught:
        loss.backward()
    assert caught[0].filename == __file__
    assert not W.has_grad
    assert x.gradient().shape == (2,)


@pytest.mark.parametrize("frozen", [False, True])
def test_who_only_wants_gradients_of_inputs_is_not_warned(frozen):
    W = eb.ParameterCollection().add_parameters((2, 2), init=1.0)
    W.freeze(frozen)
    for loss_of in (lambda x: eb.sum(x * x), lambda x: eb.sum(W @ x)):
        with eb.Graph(policy="sufficient"):
            x = eb.input([1.0, 2.0])
            loss = loss_of(x)
        loss.backward()
        assert x.gradient().all()


def test_errors(model):
    W = model["W"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        y = W @ eb.input([1.0, 2.0])
        with pytest.raises(eb.EdBatchError, match=r"shape \(3,\): expected a scalar, or its gradient"):
            y.backward()
        with pytest.raises(eb.EdBatchError, match=r"expected a gradient of shape \(3,\), got \(2,\)"):
            y.backward([1, 2])
        with pytest.raises(eb.EdBatchError, match="gradient: expected numbers"):
            y.backward("abc")
        with pytest.raises(eb.EdBatchError, match=r"call backward\(\) on"):
            y.gradient()
    with eb.Graph(policy="sufficient", dtype="float64", check_nan=True):
        x = eb.parameter(W) * eb.input(np.full((3, 2), 0.0))
        loss = eb.sum(eb.sqrt(x) * 0)
        with (
            np.errstate(divide="ignore", invalid="ignore"),
            pytest.raises(eb.EdBatchError, match="NaN in the gradient of sqrt"),
        ):
            loss.backward()
    with pytest.raises(eb.EdBatchError, match="must not depend on computed values"), eb.Graph(dtype="float64"):
        eb.cell(lambda x: [eb.sum(x).backward(), x])(eb.ones(2))


def test_gradients_that_overflow_are_infinite_and_no_warning():
    model = eb.ParameterCollection(seed=0)
    W, b = model.add_parameters((40, 40)), model.add_parameters(40)
    with eb.Graph():
        loss = eb.sum([eb.sum(eb.exp(W @ (eb.ones(40) * 1e30 * k)) * b * 1e38) for k in range(1, 4)])
    loss.backward()
    loss.backward()
    assert not np.isfinite(W.grad()).all()
    assert not np.isfinite(b.grad()).all()


def test_an_operand_that_is_stopped_in_one_of_two_batches():
    with eb.Graph():
        x = eb.input([0.5, -0.3])
        first = eb.tanh(x)
        second = eb.tanh(eb.stop_gradient(first))
        (eb.sum(first) + eb.sum(second)).backward()
        np.testing.assert_array_equal(first.gradient(), [1, 1])
        np.testing.assert_allclose(x.gradient(), 1 - np.tanh([0.5, -0.3]) ** 2, rtol=1e-6)
