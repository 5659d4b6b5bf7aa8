"""Stacked parameters: one storage, whoever writes; and cells whose products are stacked."""

import gc
import weakref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import can_stack, space_of, stacked


class TreeLSTM:
    """As a user writes it: a parameter for each gate."""

    def __init__(self, model, dim):
        for gate in "iou":
            setattr(self, f"U_{gate}", model.add_parameters((dim, 2 * dim), name=f"U_{gate}"))
            setattr(self, f"b_{gate}", model.add_parameters((dim,), name=f"b_{gate}", init=0.1))
        self.U_f1, self.U_f2 = (model.add_parameters((dim, dim), name=f"U_f{i}") for i in (1, 2))
        self.b_f = model.add_parameters((dim,), name="b_f", init=-0.2)

    @eb.cell
    def compose(self, h1, c1, h2, c2):
        e = eb.concatenate([h1, h2])
        i, o = eb.sigmoid(self.U_i @ e + self.b_i), eb.sigmoid(self.U_o @ e + self.b_o)
        u = eb.tanh(self.U_u @ e + self.b_u)
        f1, f2 = eb.sigmoid(self.U_f1 @ h1 + self.b_f), eb.sigmoid(self.U_f2 @ h2 + self.b_f)
        c = i * u + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c


def run(model_and_lstm, dtype, states, **options):
    _, lstm = model_and_lstm
    with eb.options(**options), eb.Graph(policy="sufficient", dtype=dtype):
        out = [lstm.compose(*map(eb.input, state)) for state in states]
        return np.array(eb.forward([x for pair in out for x in pair]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cell_with_stacked_products(dtype):
    dim = 6
    states = np.random.default_rng(0).normal(size=(9, 4, dim))
    model = eb.ParameterCollection(seed=3, dtype=dtype)
    both = (model, TreeLSTM(model, dim))
    tolerance = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-6}
    apart = run(both, dtype, states, compile="plain")
    assert both[1].U_i.stack is None
    stacked_values = run(both, dtype, states)
    assert both[1].U_i.stack.shape == (3 * dim, 2 * dim)
    assert both[1].U_o.stack is both[1].U_u.stack is both[1].U_i.stack
    assert both[1].b_f.stack is None
    np.testing.assert_allclose(stacked_values, apart, **tolerance)
    np.testing.assert_allclose(run(both, dtype, states, cells=False), apart, **tolerance)
    # Updates go both ways, and no call sees anything stale.
    both[1].U_o.set_value(both[1].U_o.value() * 2)
    both[1].b_i.stack.set_value(both[1].b_i.stack.value() + 1)
    np.testing.assert_array_equal(both[1].b_u.value(), np.full(dim, 1.1, dtype))
    changed = run(both, dtype, states)
    assert np.abs(changed - apart).max() > 0.01
    np.testing.assert_allclose(run(both, dtype, states, cells=False), changed, **tolerance)
    np.testing.assert_allclose(run(both, dtype, states, compile="plain"), changed, **tolerance)


def test_storage_is_shared():
    model = eb.ParameterCollection(seed=0)
    a, b = model.add_parameters((2, 3), name="a"), model.add_parameters((4, 3), name="b")
    before = np.concatenate([a.value(), b.value()])
    spec = stacked([a.spec, b.spec])
    whole = spec.parameter()
    assert repr(spec) == "a|b[6,3]"
    np.testing.assert_array_equal(whole.value(), before)
    a.set_value(np.ones((2, 3)))
    whole.set_value(whole.value() * 2)
    np.testing.assert_array_equal(a.value(), np.full((2, 3), 2))
    np.testing.assert_array_equal(b.value(), before[2:] * 2)
    assert stacked([a.spec, b.spec]) is spec


def test_what_cannot_be_stacked_stays_as_it_is():
    model = eb.ParameterCollection(seed=0)
    a, b, c = (model.add_parameters((2, 3), name=name) for name in "abc")
    assert stacked([a.spec, a.spec]) is None
    stacked([a.spec, b.spec])
    for specs in ([b, a], [a, c], [a, b, c], [a]):
        assert not can_stack([x.spec for x in specs])
        assert stacked([x.spec for x in specs]) is None
    assert c.stack is None


def test_neighbours_in_a_stack_are_a_parameter_too():
    model = eb.ParameterCollection(seed=0)
    a, b, c = (model.add_parameters((rows, 3), name=f"p{rows}") for rows in (2, 3, 4))
    whole = stacked([a.spec, b.spec, c.spec]).parameter()
    spec = stacked([b.spec, c.spec])
    assert spec is stacked([b.spec, c.spec])
    assert spec.shape == (7, 3)
    spec.parameter().set_value(np.full((7, 3), 5.0))
    assert (c.value() == 5).all()
    c.set_value(np.zeros((4, 3)))
    assert spec.parameter().value()[:3].all()
    assert not spec.parameter().value()[3:].any()
    np.testing.assert_array_equal(whole.value()[2:], spec.parameter().value())
    assert not can_stack([a.spec, c.spec])
    assert stacked([c.spec, b.spec]) is None


def test_what_has_other_columns_or_axes_is_not_stacked():
    model = eb.ParameterCollection(seed=0)
    shapes = [(2, 3), (2, 4), (3,), (), (2, 3, 1)]
    parameters = [model.add_parameters(shape, init=1.0) for shape in shapes]
    for one in parameters:
        for other in parameters:
            assert not can_stack([one.spec, other.spec])
    assert [space_of(one.spec) for one in parameters] == ["[*,3]", "[*,4]", "[*]", "[]", "[*,3,1]"]


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
    assert len({one.stack for one in (a, b, c)}) == 1
    assert sorted(spec.name for spec in a.stack.parts) == ["a", "b", "c"]
    a.stack.set_value(a.stack.value() * 2)
    with eb.Graph(policy="sufficient", dtype="float64"):
        changed = second(eb.input([1.0, 2.0, 3.0])).value()
    np.testing.assert_allclose(changed, values[1][1] ** 2, rtol=1e-12)


def test_two_cells_that_want_different_stacks():
    model = eb.ParameterCollection(seed=0)
    a, b, c = (model.add_parameters((3, 3), name=name) for name in "abc")

    @eb.cell
    def first(x):
        return a @ x + b @ x

    @eb.cell
    def second(x):
        return (c @ x) * (b @ x) + a @ x

    values = []
    for options in ({}, {"cells": False}):
        with eb.options(**options), eb.Graph(policy="sufficient"):
            x = eb.input([1.0, 2.0, 3.0])
            values.append(eb.forward([first(x), second(x), second(x[::-1])]))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_a_stack_lives_as_long_as_its_members():
    model = eb.ParameterCollection(seed=0)
    a, b = model.add_parameters((2, 3), name="a"), model.add_parameters((2, 3), name="b")
    stack = weakref.ref(stacked([a.spec, b.spec]).parameter())
    gc.collect()
    assert stack() is not None
    del model, a, b
    gc.collect()
    assert stack() is None


def test_equal_names_of_two_models_are_not_mixed_up():
    a, b = (eb.ParameterCollection(seed=seed).add_parameters((2, 2), name="W") for seed in (1, 2))
    assert stacked([a.spec, b.spec]) is not None
    assert stacked([b.spec, a.spec]) is None
    assert stacked([a.spec, b.spec]) is a.stack.spec
