"""One backward pass from several expressions, with gradients given, equals that of the sum of the products."""

import threading

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


def random_values(model, rng, graph):
    """Expressions and arrays of one graph, which has run in between."""
    with graph:
        inputs = [eb.input(rng.standard_normal(DIM)) for _ in range(3)]
        arrays = [eb.array(rng.standard_normal((6, DIM)))]
        values = [*inputs, model.table[2], model.W[1]]
        for at in range(14):
            x, y = (values[rng.integers(len(values))] for _ in range(2))
            kind = rng.integers(8)
            if kind == 0:
                values += model.step(x, y)
            elif kind == 1:
                values += model.given(x, int(rng.integers(5)))
            elif kind == 2:
                values.append(model.chain([int(word) for word in rng.integers(5, size=rng.integers(2, 5))]))
            elif kind == 3:
                values.append(eb.concatenate([x[1:3], eb.exp(-eb.square(y))[:2]]))
            elif kind == 4:
                arrays += model.step(arrays[rng.integers(len(arrays))], y)
            elif kind == 5:
                values.append(arrays[rng.integers(len(arrays))][int(rng.integers(6))] * model.b)
            elif kind == 6:
                graphs = eb.InputGraph.of_lists([[(1, 2), (2,), ()], [(1,), (2,), ()]])
                found = model.summed(graphs, rng.standard_normal((6, DIM)))
                arrays.append(found.scattered)
                values.append(found.scattered[0])
            else:
                values.append(eb.stop_gradient(x) * model.V @ y)
            if at == 8:
                values[-1].value()
    return values, arrays


def shown_otherwise(rng, x):
    """It, or a view of it."""
    entry = (slice(None),) if isinstance(x, eb.ExpressionArray) else ()
    kind = rng.integers(6)
    if kind == 0:
        return x[(*entry, slice(1, None))]
    if kind == 1:
        return x[(*entry, slice(None, None, -1))]
    if kind == 2 and entry:
        return x[[4, 0, 4]] if len(x) > 4 else x[1:]
    return eb.stop_gradient(x) if kind == 3 else x


def total_of(outputs, gradients):
    """The sum of the products, recorded."""
    terms = []
    for x, g in zip(outputs, gradients, strict=True):
        if g is not None and isinstance(x, eb.ExpressionArray):
            terms += [eb.sum(one * row) for one, row in zip(x, g, strict=True)]
        elif g is not None:
            terms.append(eb.sum(x * g))
    return eb.sum(terms)


def random_outputs(model, seed, **options):
    rng = np.random.default_rng(seed)
    graph = eb.Graph(dtype=model.b.dtype, **options)
    values, arrays = random_values(model, rng, graph)
    with graph:
        known = [*values, *arrays]
        outputs = [shown_otherwise(rng, known[at]) for at in rng.integers(len(known), size=rng.integers(2, 9))]
        gradients = [numbers(rng, x) if rng.random() < 0.85 or not at else None for at, x in enumerate(outputs)]
    return graph, known, outputs, gradients


def gradients_of(known):
    return [x.gradient() for x in known]


POLICIES = ["sufficient", "depth", "none", None]


def check_backward(seed, dtype="float64", rtol=1e-12, atol=1e-12, **options):
    model = Model(dtype)
    graph, known, outputs, gradients = random_outputs(model, seed, policy=POLICIES[seed % 4], **options)
    of = [[*model.model, *known][at] for at in np.random.default_rng(seed).permutation(5 + len(known))[:12]]
    model.b.set_grad(np.ones(DIM))
    model.U.set_grad(np.ones((DIM, DIM)))
    before = model.gradients()
    apart = eb.gradients(outputs, of, gradients)
    assert [p.has_grad for p in model.model] == [False, True, False, True, False]
    np.testing.assert_equal(model.gradients(), before)
    for _ in range(1 + seed % 2):
        model.model.zero_grad()
        eb.backward(outputs, gradients)
    found = model.gradients(), gradients_of(known)
    for one, x in zip(apart, of, strict=True):
        want = on_host(x.grad()) if isinstance(x, eb.Parameter) else x.gradient()
        np.testing.assert_allclose(one, want, rtol=rtol, atol=atol)
    model.model.zero_grad()
    with graph:
        total = total_of(outputs, gradients)
    total.backward()
    want = model.gradients(), gradients_of(known)
    for some, others in zip(found, want, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("seed", range(15))
def test_the_sum_of_the_products(seed):
    with eb.options(recompute=seed % 3 == 0, split=seed % 5 != 0, threads=1 + seed % 2):
        check_backward(seed, check_nan=seed % 7 == 0)


@pytest.mark.parametrize("seed", range(40, 42))
def test_in_single_precision(seed):
    check_backward(seed, "float32", rtol=1e-4, atol=1e-4)


def test_in_threads():
    failed = []

    def work(seed):
        try:
            check_backward(seed)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(50, 54)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


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
