"""One backward pass from several expressions, with gradients given, equals that of the sum of the products."""

import threading

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host
from tests.gradients import compare, numeric_gradients

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
    for _ in range(1 + seed % 2):
        model.model.zero_grad()
        eb.backward(outputs, gradients)
    found = model.gradients(), gradients_of(known)
    model.model.zero_grad()
    with graph:
        total = total_of(outputs, gradients)
    total.backward()
    want = model.gradients(), gradients_of(known)
    for some, others in zip(found, want, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("seed", range(40))
def test_the_sum_of_the_products(seed):
    with eb.options(recompute=seed % 3 == 0, split=seed % 5 != 0, threads=1 + seed % 2):
        check_backward(seed, check_nan=seed % 7 == 0)


@pytest.mark.parametrize("seed", range(40, 44))
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


def test_finite_differences():
    model, rng = Model(), np.random.default_rng(1)
    X, G = rng.standard_normal((2, 3, DIM)), rng.standard_normal((2, 3, DIM))

    def recorded():
        with eb.Graph(policy="sufficient", dtype="float64"):
            return model.step(eb.array(X[0]), eb.array(X[1]))

    eb.backward(recorded(), G)
    compare(
        model.model,
        numeric_gradients(model.model, lambda: sum((x.value() * g).sum() for x, g in zip(recorded(), G, strict=True))),
    )


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


def test_who_leads_nowhere_is_warned_of():
    model = Model()
    with eb.Graph(dtype="float64"):
        x, h = eb.input(np.ones(DIM)), eb.tanh(model.b)
    with pytest.warns(eb.EdBatchWarning, match="no parameter got a gradient"):
        eb.backward([x, eb.stop_gradient(h)], [np.ones(DIM)] * 2)
