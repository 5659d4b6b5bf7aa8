"""Gradients of parameters: added up, kept in the stack's storage, sparse for tables."""

import copy
import pickle

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host


@pytest.mark.cpu
def test_rows_of_a_table_are_merged():
    random = np.random.default_rng(0)
    table = eb.ParameterCollection(dtype="float64").add_lookup_parameters((20, 3))
    assert table.sparse_grad() is None
    expected = np.zeros((20, 3))
    for n in (7, 0, 12):
        rows, values = random.integers(0, 20, n), random.standard_normal((n, 3))
        np.add.at(expected, rows, values)
        table.add_rows(rows.astype(np.int32), values)
    rows, values = table.sparse_grad()
    assert rows.dtype == np.int64
    assert (np.diff(rows) > 0).all()
    np.testing.assert_allclose(values, expected[rows], rtol=1e-12)
    np.testing.assert_allclose(on_host(table.grad()), expected, rtol=1e-12)
    table.scale_grad(2)  # as clipping does
    np.testing.assert_allclose(on_host(table.grad()), 2 * expected, rtol=1e-12)
    table.zero_grad()
    assert not table.has_grad
    assert table.sparse_grad() is None
    np.testing.assert_array_equal(on_host(table.grad()), np.zeros((20, 3)))


def test_what_is_read_is_a_copy():
    """Of values and gradients alike: what was read stays, and cannot be taken for the parameter's own."""
    model = eb.ParameterCollection(seed=0)
    W, table = model.add_parameters((2, 3), name="Wc", init=1.0), model.add_lookup_parameters((4, 3), name="Tc")
    for parameter in (W, table):
        with eb.Graph(dtype=parameter.dtype):
            x = eb.input(np.ones(3))
            loss = eb.sum(W @ x) if parameter is W else eb.sum(x * table[1]) + eb.sum(x * table[3])
        loss.backward()
        saved = [parameter.value(), parameter.grad(), x.gradient(), loss.value()]
        saved += [*table.sparse_grad()] if parameter is table else []
        before = [np.copy(one) for one in saved]
        x.gradient()[...] = 7  # nobody takes it for what training reads
        read = [parameter.value(), parameter.grad(), *(table.sparse_grad() if parameter is table else ())]
        for one in read:
            with pytest.raises(ValueError, match="read-only"):
                one[...] = 7
        for one, want in zip([parameter.value(), parameter.grad(), x.gradient()], before, strict=False):
            np.testing.assert_array_equal(one, want)
        gradient = parameter.grad()
        parameter.scale_grad(3.0)
        np.testing.assert_array_equal(parameter.grad(), 3 * gradient)
        parameter.set_grad(gradient + 1)
        np.testing.assert_array_equal(parameter.grad(), gradient + 1)
        eb.SGD(model, lr=1.0).update()
        np.testing.assert_allclose(parameter.value(), before[0] - gradient - 1, rtol=1e-6)
        loss.backward()
        parameter.zero_grad()
        for one, want in zip(saved, before, strict=True):
            np.testing.assert_array_equal(one, want)


def test_values_of_expressions_are_the_callers_own():
    with eb.Graph():
        xs = eb.array(np.ones((2, 3), np.float32))
        probabilities = eb.softmax(xs[0])
    value, values = probabilities.value(), xs.value()
    value /= value.sum()
    values[...] = 0
    np.testing.assert_array_equal(xs.value(), np.ones((2, 3)))


def test_a_parameter_copies_the_array_that_it_is_made_of():
    array = np.zeros(3, np.float32)
    model = eb.ParameterCollection()
    made = [eb.Parameter("x", array), model.add_parameters(3, init=array)]
    made += [model.add_parameters(3, init=lambda *_: array), pickle.loads(pickle.dumps(made[0])), copy.copy(made[0])]
    array[0] = 1
    for x in made:
        np.testing.assert_array_equal(x.value(), [0, 0, 0])
        x.set_grad([1, 1, 1])
    eb.SGD(made, lr=1.0).update()
    for x in made:
        np.testing.assert_array_equal(x.value(), [-1, -1, -1])
