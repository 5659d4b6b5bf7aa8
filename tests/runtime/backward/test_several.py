"""One backward pass from several expressions, with gradients given, equals that of the sum of the products."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.runtime.backward import backward
from tests.arrays import on_host

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")

DIM = 4


class Model:
    def __init__(self, dtype="float64"):
        self.model = model = eb.ParameterCollection(seed=0, dtype=dtype)
        self.W, self.U, self.V = (model.add_parameters((DIM, DIM), name=name) for name in "WUV")
        self.b = model.add_parameters(DIM, name="b", init="normal")
        self.table = model.add_lookup_parameters((5, DIM), name="table", init="normal")

        @eb.vertex
        def summed(v):
            v.scatter(eb.tanh(self.V @ eb.sum([v.pull(), *v.gather()])))

        self.summed = summed

    @eb.cell
    def step(self, x, y):
        """Two products of one operand: their matrices are put side by side."""
        h, c = eb.tanh(self.W @ x + self.b), eb.sigmoid(self.U @ x)
        return h * c, c + y

    @eb.cell
    def given(self, x, word: int):
        return x, x * self.table[word]

    @eb.replay
    def chain(self, words):
        h = self.table[words[0]]
        for word in words[1:]:
            h, _ = self.step(h, self.table[word])
        return h

    def gradients(self):
        return [on_host(p.grad()) for p in self.model]


def numbers(rng, x):
    return rng.standard_normal((len(x), *x.shape) if isinstance(x, eb.ExpressionArray) else x.shape)


def test_gradients_add_up_where_a_root_is_read_shown_or_there_twice():
    with eb.Graph(dtype="float64"):
        x = eb.input([1.0, 2.0, 3.0])
        y = x * 2
        z = y * 10
    eb.backward(
        [z, y, y[1:], y[:2], y, x],
        [np.full(3, float(k)) if k not in (2, 3) else np.full(2, float(k)) for k in range(6)],
    )
    np.testing.assert_array_equal(y.gradient(), [1 + 3 + 4, 1 + 2 + 3 + 4, 1 + 2 + 4])
    np.testing.assert_array_equal(x.gradient(), 2 * y.gradient() + 5)
    np.testing.assert_array_equal(z.gradient(), np.zeros(3))
    with y.graph:
        later = y + z
    eb.backward([later, x], [np.ones(3), np.ones(3)])
    np.testing.assert_array_equal(x.gradient(), [23.0] * 3)
    np.testing.assert_array_equal(z.gradient(), [1.0] * 3)


def test_many_outputs_of_one_batch_and_some_of_another():
    """Rows that are not side by side, in another order, and several times."""
    with eb.Graph(policy="sufficient", dtype="float64"):
        xs = eb.array(np.arange(12.0).reshape(6, 2))
        ys = xs * xs
        some = ys[[5, 1, 1, 0]]
    G = np.arange(8.0).reshape(4, 2)
    for _ in range(4):  # the third one finds its plan
        eb.backward(some, G)
        want = np.zeros((6, 2))
        np.add.at(want, [5, 1, 1, 0], G)
        np.testing.assert_array_equal(ys.gradient(), want)
        np.testing.assert_array_equal(xs.gradient(), 2 * xs.value() * want)
        eb.backward([ys[1], *ys[2:4]], [G[0], *G[1:3]])
        np.testing.assert_array_equal(ys.gradient(), [[0, 0], G[0], G[1], G[2], [0, 0], [0, 0]])


def test_graphs_of_one_structure_find_the_plan_of_their_outputs():
    model = Model()
    for number in range(12):
        model.model.zero_grad()
        with eb.Graph(policy="sufficient", dtype="float64"):
            h, c = model.step(eb.input(np.full(DIM, number / 10)), eb.input(np.ones(DIM)))
        outputs = [[h, c], [c, h], [h], [h, h]][number % 4]
        eb.backward(outputs, [np.ones(DIM)] * len(outputs))
        found = model.gradients()
        model.model.zero_grad()
        with h.graph:
            total = eb.sum([eb.sum(x) for x in outputs])
        total.backward()
        for one, other in zip(found, model.gradients(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_an_output_without_a_gradient_is_none():
    """It is no gradient of zero, which times an infinite derivative is not a number."""
    with eb.Graph(dtype="float64"):
        x = eb.input([0.0, 1.0])
        root, y = eb.sqrt(x), x * 3
    eb.backward([root, y], [None, np.ones(2)])
    np.testing.assert_array_equal(x.gradient(), [3, 3])
    eb.backward([root, y], [None, None])
    np.testing.assert_array_equal(x.gradient(), [0, 0])
    with x.graph:
        none = eb.array([root])[:0]
    eb.backward([none, y], [np.ones((0, 2)), np.ones(2)])
    np.testing.assert_array_equal(x.gradient(), [3, 3])


def test_scalars_need_no_gradient():
    W = eb.ParameterCollection(dtype="float64").add_parameters(2, init=1.0)
    with eb.Graph(dtype="float64"):
        xs = eb.array(np.arange(6.0).reshape(3, 2))
        losses, loss = eb.dot(W, xs), eb.sum(W)
    eb.backward([losses, loss])
    np.testing.assert_array_equal(on_host(W.grad()), [7, 10])
    eb.backward(losses)
    np.testing.assert_array_equal(on_host(W.grad()), [13, 19])
    eb.backward(loss, 3)
    np.testing.assert_array_equal(on_host(W.grad()), [16, 22])


def test_errors():
    with eb.Graph() as graph:
        x, xs = eb.input([1.0, 2.0]), eb.array(np.ones((3, 2)))
    with eb.Graph():
        other = eb.scalar(1.0)

    @eb.cell
    def reads(x):
        eb.backward([x], [1.0])

    for outputs, gradients, message in [
        ([], None, "backward: expected at least one output"),
        (3, None, "backward: expected a list of expressions, got 3"),
        ([x, 3], [None, None], "backward: output 1: expected an expression, got int"),
        ([3], None, "backward: output 0: expected an expression, got int"),
        ([x, other], [np.ones(2), 1], "backward: output 1: an expression of another graph"),
        ([x], None, r"backward of an expression of shape \(2,\): expected a scalar"),
        (xs, None, r"backward of an expression of shape \(2,\): expected a scalar"),
        (xs, np.ones(2), r"backward: expected a gradient of shape \(3, 2\), got \(2,\)"),
        ([x, xs], [np.ones(2)], "backward: expected 2 gradients, one for each output, got 1"),
        ([x], 1.0, "backward: expected a list of gradients, got 1.0"),
        ([x], ["two"], "backward: the gradient: expected numbers"),
    ]:
        with pytest.raises(eb.EdBatchError, match=message):
            eb.backward(outputs, gradients)
    with graph, pytest.raises(eb.EdBatchError, match="reads a value"):
        reads(x)
    with pytest.raises(eb.EdBatchError, match=r"eb.backward\(xs, gradients\) takes an array"):
        xs.backward()


def test_parameters_that_changed():
    model = Model()
    with eb.Graph(dtype="float64"):
        h, c = model.step(eb.input(np.ones(DIM)), eb.input(np.ones(DIM)))
    h.value()
    model.W.set_value(np.zeros((DIM, DIM)))
    with pytest.raises(eb.EdBatchError, match="backward: W changed after the graph had run"):
        eb.backward([h, c], [np.ones(DIM)] * 2)
    assert not any(p.has_grad for p in model.model)


def test_gradients_that_are_asked_for_change_nothing():
    model = Model()
    with eb.Graph(dtype="float64"):
        x = eb.input(np.ones(DIM))
        h, c = model.step(x, model.table[3])
        loss = eb.sum(h)
    loss.backward()
    before, of_x, of_h = model.gradients(), x.gradient(), h.gradient()
    (found,) = eb.gradients([h, c], x, [np.ones(DIM), np.full(DIM, 2.0)])
    assert not np.allclose(found, of_x)
    np.testing.assert_array_equal(x.gradient(), of_x)  # of the loss, still
    eb.gradients(c, [model.W, h], np.ones(DIM))
    np.testing.assert_array_equal(h.gradient(), of_h)
    np.testing.assert_equal(model.gradients(), before)
    with loss.graph:
        later = eb.sum(c) * 2
    np.testing.assert_array_equal(eb.gradients(later, c)[0], np.full(DIM, 2.0))
    np.testing.assert_array_equal(x.gradient(), of_x)
    assert later.gradient() == 0


def test_tables_by_row_and_whole():
    model = Model()
    with eb.Graph(dtype="float64"):
        xs = model.table[[4, 1, 4]]
        scores = model.table @ xs[0]
    G = np.arange(12.0).reshape(3, DIM)
    want = np.zeros((5, DIM))
    np.add.at(want, [4, 1, 4], G)
    np.testing.assert_array_equal(eb.gradients(xs, model.table, G)[0], want)
    (rows, values), of_W = eb.gradients(xs, [model.table, model.W], G, sparse=True)
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(rows, [1, 4])
    np.testing.assert_array_equal(values, want[[1, 4]])
    np.testing.assert_array_equal(of_W, np.zeros((DIM, DIM)))
    ((rows, values),) = eb.gradients(scores, [model.table], np.ones(5), sparse=True)
    np.testing.assert_array_equal(rows, np.arange(5))
    table = model.table.value()
    np.testing.assert_allclose(values, table[4] + np.outer(np.arange(5) == 4, table.sum(axis=0)), rtol=1e-12)
    with scores.graph:
        other = model.b * 2
    ((rows, values),) = eb.gradients(other, [model.table], np.ones(DIM), sparse=True)
    assert rows.shape == (0,)
    assert values.shape == (0, DIM)


def test_returned_arrays_are_the_callers_own():
    model = Model()
    with eb.Graph(dtype="float64"):
        xs = eb.array(np.ones((3, DIM)))
        h, _ = model.step(xs, xs)
    of = [model.W, model.U, model.W, model.table, model.table, xs, xs[1], xs]
    for sparse in (False, True):
        found = eb.gradients(h, of, np.ones((3, DIM)), sparse=sparse)
        arrays = [array for one in found for array in (one if isinstance(one, tuple) else [one])]
        copies = [array.copy() for array in arrays]
        for at, array in enumerate(arrays):
            array += 1
            for other, copy in zip(arrays[at + 1 :], copies[at + 1 :], strict=True):
                np.testing.assert_array_equal(other, copy)
    assert not any(p.has_grad for p in model.model)
    np.testing.assert_array_equal(copies[0], eb.gradients(h, [model.W], np.ones((3, DIM)))[0])


def test_frozen_parameters_are_refused_and_their_neighbours_are_not():
    model = Model()
    model.U.freeze()
    with eb.Graph(dtype="float64"):
        h, _ = model.step(eb.input(np.ones(DIM)), eb.input(np.ones(DIM)))
    with pytest.raises(eb.EdBatchError, match=r"gradients: .*U.* is frozen, and has no gradient"):
        eb.gradients(h, [model.W, model.U], np.ones(DIM))
    (found,) = eb.gradients(h, [model.W], np.ones(DIM))
    eb.backward(h, np.ones(DIM))
    np.testing.assert_array_equal(found, on_host(model.W.grad()))


def test_an_error_leaves_gradients_as_they_were(monkeypatch):
    model = Model()
    with eb.Graph(dtype="float64"):
        x = eb.input(np.ones(DIM))
        h, c = model.step(x, model.table[3])
    eb.backward([h, c], [np.ones(DIM)] * 2)
    before, of_x, came = model.gradients(), x.gradient(), [p.has_grad for p in model.model]

    def fails(*given, known=backward.add_terms):
        known(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(backward, "add_terms", fails)
    with pytest.raises(KeyboardInterrupt):
        eb.gradients([h, c], [*model.model, x], [np.full(DIM, 7.0)] * 2)
    np.testing.assert_equal(model.gradients(), before)
    assert [p.has_grad for p in model.model] == came
    np.testing.assert_array_equal(x.gradient(), of_x)


def test_what_gradients_may_be_asked_for():
    model = Model()
    with eb.Graph(dtype="float64"):
        x = eb.input(np.ones(DIM))
        y = model.W @ x
    with eb.Graph():
        other = eb.scalar(1.0)
    for of, message in [
        (3, "gradients: expected a list of expressions, got 3"),
        ([x, 3], "gradients: entry 1: expected an expression, got int"),
        ([other], "gradients: entry 0: an expression of another graph"),
    ]:
        with pytest.raises(eb.EdBatchError, match=message):
            eb.gradients(y, of, np.ones(DIM))
    with pytest.raises(eb.EdBatchError, match="gradients of an expression of shape"):
        eb.gradients(y, [x])
    with pytest.raises(eb.EdBatchError, match="gradients: expected at least one output"):
        eb.gradients([], [x])
    assert eb.gradients(y, [], np.ones(DIM)) == []
    np.testing.assert_array_equal(eb.gradients([y], model.model, [None])[0], np.zeros((DIM, DIM)))
    model.W.set_value(np.zeros((DIM, DIM)))
    with pytest.raises(eb.EdBatchError, match="W changed after the graph had run"):
        eb.gradients(y, x, np.ones(DIM))


def test_who_leads_nowhere_is_warned_of():
    model = Model()
    with eb.Graph(dtype="float64"):
        x, h = eb.input(np.ones(DIM)), eb.tanh(model.b)
    with pytest.warns(eb.EdBatchWarning, match="no parameter got a gradient"):
        eb.backward([x, eb.stop_gradient(h)], [np.ones(DIM)] * 2)


def test_what_no_output_depends_on():
    model = eb.ParameterCollection(dtype="float64", seed=0)
    used, unused = model.add_parameters(DIM), model.add_parameters(DIM)
    table = model.add_lookup_parameters((3, DIM))
    with eb.Graph(dtype="float64"):
        x = eb.input(np.ones(DIM))
        y, other = eb.dot(used, x), eb.dot(unused, table[1])
    of = [used, unused, table, x]
    zeros = eb.gradients(y, of)
    assert not zeros[1].any()
    assert not zeros[2].any()
    for sparse in (False, True):
        found = eb.gradients(y, of, sparse=sparse, unused_as_none=True)
        assert found[1:3] == [None, None]
        np.testing.assert_array_equal(found[0], np.ones(DIM))
        np.testing.assert_array_equal(found[3], used.value())
        assert all(g is not None for g in eb.gradients([y, other], of, sparse=sparse, unused_as_none=True))
