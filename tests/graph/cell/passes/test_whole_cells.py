"""Cells that passes change most: the same numbers and gradients as op by op, however they are written."""

import numpy as np
import pytest

import edbatch as eb


class LSTM:
    """As many write it: the gates' weights side by side, input and state concatenated."""

    def __init__(self, dim, dtype, order="hx"):
        model = self.model = eb.ParameterCollection(seed=3, dtype=dtype)
        self.W = [model.add_parameters((dim, 2 * dim + 1), name=f"W{gate}") for gate in "ifou"]
        self.b = [model.add_parameters((dim,), name=f"b{gate}", init="uniform") for gate in "ifou"]
        self.out = model.add_parameters((dim, 2 * dim), name="out")
        self.table = model.add_lookup_parameters((9, dim), name="table", init="glorot")
        self.order, self.dim = order, dim

    @eb.cell
    def step(self, one, word: int, h, c):
        x = eb.lookup(self.table, word)
        e = eb.concatenate([{"h": h, "x": x, "1": one}[name] for name in self.order])
        i, f, o, u = (W @ e + b for W, b in zip(self.W, self.b, strict=True))
        c = eb.sigmoid(f) * c + eb.sigmoid(i) * eb.tanh(u)
        h = eb.sigmoid(o) * eb.tanh(c)
        return h, c, eb.softmax(self.out @ eb.concatenate([x, h]))

    def chains(self):
        out = []
        for length in (5, 2, 4):
            h = c = eb.ones(self.dim)
            for word in range(length):
                h, c, p = self.step(eb.input([word]), word, h, c)
                out += [h, c, p]
        return out


@pytest.mark.parametrize("order", ["h1x", "1hx", "x1h"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_with_input_and_state_is_early_for_the_input(order, dtype):
    lstm = LSTM(4, dtype, order)
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for _ in range(2):
        values = []
        for cells in (True, False):
            with eb.options(cells=cells), eb.Graph(policy="sufficient", dtype=dtype) as graph:
                values.append(np.concatenate(eb.forward(lstm.chains())))
            if cells:
                assert graph.report().batches == graph.report().lower_bound == 1 + 5 + 1
        np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance)
        lstm.W[2].set_value(lstm.W[2].value() + 1)  # its columns are views of it


def test_a_view_goes_down_as_many_ops_as_there_are():
    """More than Python's stack has room for."""
    n = 600

    @eb.cell
    def long(x, z):
        h = x
        for _ in range(n):
            h = h * z + x
        return eb.tanh(h[1:])

    want = np.array([0.01, 0.02, 0.03]) * sum(0.5**k for k in range(n))
    with eb.Graph(policy="sufficient", dtype="float64"):
        x, z = eb.input([0.01, 0.02, 0.03]), eb.input([0.5, 0.5, 0.5])
        y = long(x, z)
        eb.sum(y).backward()
    np.testing.assert_allclose(y.value(), np.tanh(want[1:]), rtol=1e-12)
    np.testing.assert_allclose(x.gradient(), [0, *(2 * (1 - np.tanh(want[1:]) ** 2))], rtol=1e-12)


def test_a_second_cell_uses_what_it_can_of_a_stack():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    a, b, c = (model.add_parameters((3, 3), name=name) for name in "abc")

    @eb.cell
    def first(x):
        return eb.tanh(a @ x) * eb.tanh(b @ x) + c @ x

    @eb.cell
    def second(x):
        return eb.concatenate([eb.exp(b @ x), eb.exp(a @ x)])

    @eb.cell
    def third(x):
        return (c @ x) * (a @ x)

    values = []
    for options in ({}, {"cells": False}):
        with eb.options(**options), eb.Graph(policy="sufficient", dtype="float64"):
            x = eb.input([1.0, 2.0, 3.0])
            values.append(eb.forward([first(x), second(x), third(x)]))
    for got, want in zip(*values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    for one in (a, b, c):
        one.set_value(one.value() * 2)
    with eb.Graph(policy="sufficient", dtype="float64"):
        changed = second(eb.input([1.0, 2.0, 3.0])).value()
    np.testing.assert_allclose(changed, values[1][1] ** 2, rtol=1e-12)
