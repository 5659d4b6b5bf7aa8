"""Backward through whole graphs: any policy equals unbatched equals finite differences; growing graphs; errors."""

import gc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.devices import device
from edbatch.runtime.compile import derivatives
from edbatch.runtime.type_table import shared_table
from tests.arrays import on_host
from tests.gradients import check_parameters, compare, numeric, numeric_gradients

POLICIES = ["none", "depth", "agenda", "sufficient"]
DIM = 4

NAMES = [
    "tanh", "add", "multiply", "W", "V", "halves", "lookup", "mean_list", "logsumexp_list", "sum_list", "half", "flip",
    "scaled", "softmax", "outer", "ce", "read", "gated", "pair", "stop", "double", "bias", "node", "matrix",
]  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.lists(st.integers(0, 10**6), min_size=1, max_size=5)), min_size=1, max_size=50
)
EVERY = [(name, [7 * at + 3, 5 * at + 1, at]) for at, name in enumerate(NAMES * 2)]


class Program:
    """A random program: parameters, and a loss over all it computes."""

    def __init__(self, steps):
        self.steps = steps
        self.model = eb.ParameterCollection(seed=3, dtype="float64")
        self.W = self.model.add_parameters((DIM, DIM), name="W")
        self.V = self.model.add_parameters((DIM, DIM), name="V")
        self.b = self.model.add_parameters(DIM, name="b", init=0.3)
        self.table = self.model.add_lookup_parameters((7, DIM), name="table", init="glorot")

    @eb.cell
    def gated(self, x, h):
        """Two products with one vector, which are stacked; and a sum over a list."""
        z, n = eb.sigmoid(self.W @ h + self.b), eb.tanh(self.V @ h + x)
        return eb.mean([z * n, (1 - z) * h])

    @eb.cell
    def pair(self, x, h, word: int):
        """A look-up in a cell; a result that is a part of another, and one that is an argument."""
        y = eb.concatenate([self.V @ (x * h), eb.lookup(self.table, word)])
        return eb.tanh(y)[DIM // 2 : DIM + DIM // 2], y, h

    def build(self, policy, reads=True):
        """The graph's loss and its inputs."""
        with eb.Graph(policy=policy, dtype="float64") as graph:
            self.graph = graph
            inputs = [eb.input(np.linspace(-1, 1, DIM) * (number + 1) / 3) for number in range(3)]
            xs, losses = list(inputs), []
            for name, choices in self.steps:
                picked = [xs[choice % len(xs)] for choice in choices]
                a, b = picked[0], picked[-1]
                number = choices[0]
                if name == "ce":
                    losses.append(eb.cross_entropy(a, number % DIM))
                elif name == "read":  # the graph goes on growing
                    if reads:
                        a.value()
                else:
                    xs.append(self.step(name, a, b, picked, number))
            weights = eb.input(np.cos(np.arange(DIM)))
            losses += [eb.sum(x * weights) for x in xs[1::2]]  # some are not reached
            return eb.sum(losses), inputs, xs

    def step(self, name, a, b, picked, number):
        if name == "tanh":
            return eb.tanh(a)
        if name == "add":
            return 0.5 * a + b / 2
        if name == "multiply":
            return eb.tanh(a * b)
        if name in ("W", "V"):
            return getattr(self, name) @ a
        if name == "halves":
            left, right = eb.split(a, 2)
            return eb.concatenate([right, left])
        if name == "lookup":
            return eb.lookup(self.table, number % 7)
        if name.endswith("_list"):
            return {"sum": eb.sum, "mean": eb.mean, "logsumexp": eb.logsumexp}[name[:-5]](picked) / len(picked)
        if name == "half":
            return eb.concatenate([a[1:3], b[:2]])
        if name == "flip":
            return eb.flip(a)
        if name == "scaled":
            return eb.tanh(a * b[number % DIM])
        if name == "softmax":
            return eb.softmax(a)
        if name == "outer":
            return eb.tanh((eb.reshape(a, (DIM, 1)) @ eb.reshape(b, (1, DIM))) @ b)
        if name == "gated":
            return self.gated(a, b)
        if name == "pair":
            return eb.tanh(eb.sum(list(self.pair(a, b, number % 7)[::2])))
        if name == "stop":
            return a * 1.0 if number % 2 else a + 0 * eb.stop_gradient(b)
        if name == "double":
            return eb.tanh(a + a)
        if name == "bias":
            return a * self.b
        if name == "node":
            return eb.parameter(self.W) @ a
        return eb.tanh((eb.stack([a, b]) @ self.V).T)[:, 1][:1] * self.b  # broadcast from a part of a transposition


def gradients(program, policy, reads=True, **options):
    program.model.zero_grad()
    with eb.options(**options):
        loss, inputs, xs = program.build(policy, reads)
        loss.backward()
        found = [on_host(parameter.grad()).copy() for parameter in program.model]
        return found + [x.gradient() for x in inputs] + [x.gradient() for x in xs]


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@settings(max_examples=60)
@given(STEPS)
@example(EVERY)
def test_random_programs(steps):
    """Any policy, with and without cells, saving or computing again, equals unbatched."""
    program = Program(steps)
    want = gradients(program, "none", cells=False)
    for policy in POLICIES:
        for options in ({}, {"cells": False}, {"recompute": True}, {"compile": "plain"}):
            got = gradients(program, policy, **options)
            for mine, theirs in zip(got, want, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@settings(max_examples=25)
@given(STEPS)
@example(EVERY)
def test_random_programs_against_finite_differences(steps):
    program = Program(steps)
    program.model.zero_grad()
    loss, _, _ = program.build("sufficient")
    loss.backward()
    check_parameters(program.model, lambda: program.build("sufficient")[0].value(), rtol=1e-4, atol=1e-6)


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


def test_through_a_graph_that_grew(model):
    W, table = model["W"], model["table"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.lookup(table, 2)
        y = eb.tanh(W @ x)
        middle = y.value()
        first = eb.sum(y)
        first.backward()
        z = eb.concatenate([y[:1] * y[1:2], table[4][:1]])
        last = squared(W, z)
    gradient_of_first = y.gradient()
    np.testing.assert_array_equal(gradient_of_first, np.ones(3))
    np.testing.assert_array_equal(z.gradient(), np.zeros(2))  # not there yet
    model.zero_grad()
    last.backward()
    assert y.value() is not middle

    def loss():
        with eb.Graph(policy="none", dtype="float64"):
            y = eb.tanh(W @ table[2])
            return eb.sum(eb.square(W @ eb.concatenate([y[:1] * y[1:2], table[4][:1]]))).value()

    check_parameters(model, loss)


def test_expressions_have_gradients(model):
    values = np.array([[0.5, -1.0], [2.0, 0.3]])
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.input(values)
        unused = eb.tanh(x)
        loss = eb.sum(eb.square(x.T[0])) + eb.sum(x[1]) * x[0, 1]
        loss.backward()
    want = numeric(lambda v: np.sum(v[:, 0] ** 2) + v[1].sum() * v[0, 1], values)
    np.testing.assert_allclose(x.gradient(), want, rtol=1e-8)
    np.testing.assert_allclose(x.T.gradient(), want.T, rtol=1e-8)
    np.testing.assert_allclose(x[1].gradient(), want[1], rtol=1e-8)
    assert isinstance(x[0, 1].gradient(), np.float64)
    assert loss.gradient() == 1
    np.testing.assert_array_equal(unused.gradient(), np.zeros((2, 2)))
    first = x.gradient()
    first += 1  # the caller's own
    np.testing.assert_allclose(x.gradient(), want, rtol=1e-8)


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


def test_through_cells_that_are_split():
    """What does not wait for a recurrence, and what it does not wait for, with weights that are parts of others."""
    model = eb.ParameterCollection(seed=1, dtype="float64")
    U, V = model.add_parameters((2 * DIM, 2 * DIM), name="U"), model.add_parameters((3, DIM), name="V")
    b = model.add_parameters(2 * DIM, name="b", init=0.2)

    @eb.cell
    def step(x, h):
        z, n = eb.split(U @ eb.concatenate([x, h]) + b, 2)
        h = eb.sigmoid(z) * eb.tanh(n) + h
        return h, V @ h, eb.tanh(h)

    def build():
        with eb.Graph(policy="sufficient", dtype="float64") as graph:
            states, scores = [], []
            for length in (3, 5):
                h = eb.zeros(DIM)
                for at in range(length):
                    h, score, squashed = step(eb.input(np.cos(np.arange(DIM) + at)), h)
                    scores += [eb.cross_entropy(score, at % 3), eb.sum(squashed[1:3])]
                    states.append(h)
            return graph, eb.sum(scores), states

    wants = numeric_gradients(model, lambda: build()[1].value())
    of_states = []
    for options in ({"cells": False}, {"split": False}, {}, {"recompute": True}):
        model.zero_grad()
        with eb.options(**options):
            graph, loss, states = build()
            loss.backward()
        compare(model, wants)
        of_states.append([h.gradient() for h in states] + [h[1:].gradient() for h in states])
        names = " ".join(graph.report().uses)
        assert ("(eager" in names and "(lazy" in names) == (not {"cells", "split"} & set(options))
    for found in of_states[1:]:
        for got, want in zip(found, of_states[0], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_gradients_of_inputs_leave_parameters_alone(model):
    W = model["W"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.input([1.0, 2.0])
        loss = squared(W, x)
    loss.backward()
    before = on_host(W.grad()).copy()
    np.testing.assert_allclose(x.gradient(), 2 * W.value().T @ W.value() @ [1, 2])
    np.testing.assert_array_equal(on_host(W.grad()), before)


def test_a_seed_gradient(model):
    W = model["W"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        y = W @ eb.input([1.0, 2.0])
        y.backward([1, 0, -2])
        np.testing.assert_array_equal(on_host(W.grad()), np.outer([1, 0, -2], [1, 2]))
        y[1].backward()  # of a part
        np.testing.assert_array_equal(on_host(W.grad()), np.outer([1, 1, -2], [1, 2]))


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
def test_stopped_and_scaled(model):
    W = model["W"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        y = W @ eb.input([1.0, 2.0])
        loss = eb.sum(eb.stop_gradient(y) * y) + eb.sum(eb.scale_gradient(y, -3.0)) + eb.sum(eb.stop_gradient(y))
    loss.backward()
    np.testing.assert_allclose(on_host(W.grad()), np.outer(W.value() @ [1, 2] - 3, [1, 2]))
    model.zero_grad()
    eb.stop_gradient(loss).backward()
    assert not W.has_grad


def test_table_gradients_are_sparse(model):
    table = model["table"]
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum([eb.sum(eb.square(table[i])) for i in (3, 1, 3, -1)])
    loss.backward()
    rows, values = table.sparse_grad()
    np.testing.assert_array_equal(rows, [1, 3, 4])
    np.testing.assert_allclose(on_host(values), np.array([[2.0], [4.0], [2.0]]) * table.value()[rows])


def test_rows_of_a_table_that_a_cell_fixes(model):
    table, W = model["table"], model["W"]

    @eb.cell
    def fixed(x, word: int):
        return eb.sum(eb.square(W @ (x * table[2] + eb.lookup(table, word))))

    def loss():
        with eb.Graph(policy="sufficient", dtype="float64"):
            return eb.sum([fixed(eb.input([1.0, at]), at) for at in (0, 2, 4, 0)])

    loss().backward()
    np.testing.assert_array_equal(table.sparse_grad()[0], [0, 2, 4])
    check_parameters(model, lambda: loss().value())


def test_what_is_saved(model):
    for options, saves in (({}, True), ({"recompute": True}, False)):
        with eb.options(**options), eb.Graph(policy="sufficient", dtype="float64") as graph:
            first = squared(model["W"], eb.input([1.0, 2.0]))
            first.backward()
            second = squared(model["W"], eb.input([3.0, 2.0]))
            second.value()  # a run that backward did not start
            second.backward()
        assert [bool(ran.saved) for ran in graph._evaluation.ran] == [saves, False]


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


def test_nothing_is_computed_where_no_gradient_is_asked_for(model):
    with eb.Graph(policy="sufficient", dtype="float64") as graph:
        x = eb.sin(eb.sin(eb.input([1.0, 2.0])))
        loss = eb.sum(model["W"] @ x)
    loss.backward()
    names = graph._evaluation.plan.tables.batches["type"]
    bound = {
        graph._evaluation.table.bound[kind].type.op.name: graph._evaluation.table.bound[kind] for kind in names.tolist()
    }
    assert not any(key[0] == (True,) for key in bound["sin"].derivatives)
    backend = graph._evaluation.table.backend
    found = derivatives.compiled(bound["matmul"], [False], True, frozenset([0]), backend)
    assert found.flows.operands == (None,)


def test_determinism():
    random = np.random.default_rng(0)
    words = random.integers(0, 9, (40, 6))
    results = []
    for _ in range(2):
        model = eb.ParameterCollection(seed=0)
        table = model.add_lookup_parameters((9, 8))
        W = model.add_parameters((8, 8))
        with eb.Graph(policy="sufficient"):
            losses = []
            for sentence in words.tolist():
                h = eb.zeros(8)
                for word in sentence:
                    h = eb.tanh(W @ (h + table[word]))
                losses.append(eb.sum(h))
            eb.sum(losses).backward()
        results.append((on_host(W.grad()), on_host(table.grad())))
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_buffers_go_back_to_the_pool(model):
    def held():
        gc.collect()
        return shared_table(device("cpu")).pool.kept

    def step():
        with eb.Graph(policy="sufficient", dtype="float64"):
            loss = squared(model["W"], eb.lookup(model["table"], 1))
        loss.backward()
        loss.backward()

    step()
    before = held()
    step()
    assert held() == before


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
        with pytest.raises(eb.EdBatchError, match="expected a call of backward"):
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


def test_a_model_that_was_deleted():
    model = eb.ParameterCollection(dtype="float64")
    W = model.add_parameters((2, 2), name="gone")
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum(W @ eb.input([1.0, 2.0]))
    loss.value()
    del model, W
    gc.collect()
    with pytest.raises(eb.EdBatchError, match="gone"):
        loss.backward()


@pytest.mark.parametrize("n", [1, 3, 70])
def test_gradients_that_overflow_are_infinite_and_no_warning(n):
    model = eb.ParameterCollection(seed=0)
    W, b = model.add_parameters((40, 40)), model.add_parameters(40)
    with eb.Graph():
        loss = eb.sum([eb.sum(eb.exp(W @ (eb.ones(40) * 1e30 * k)) * b * 1e38) for k in range(1, n + 1)])
    loss.backward()
    loss.backward()
    assert not np.isfinite(W.grad()).all()
    assert not np.isfinite(b.grad()).all()


def test_ways_back_through_several_stretches_by_one_route():
    """Stretches that are saved each for itself may be gone back by the same rules; what they compute lies elsewhere."""
    model = eb.ParameterCollection(seed=0)
    random = np.random.default_rng(0)
    W, b, table = model.add_parameters((4, 4)), model.add_parameters(4), model.add_lookup_parameters((7, 4))
    W.set_value([[-1.2, -0.5, 0.1, 0.2], [-1.0, 0.3, 0.6, 0.5], [1.6, -0.1, 0.2, 1.6], [1.4, 1.4, -1.0, 1.25]])
    x, y, z = [-1.6, 0.5, -1.0, -0.5], random.normal(size=4), [0.9, 1.3, -0.5, 1.3]
    seed = random.normal(size=(4, 2))

    def pooled(given):
        h = eb.affine(W, given, eb.scatter(eb.lookup(table, 2), eb.input([1, 3, 2, 3]), given, axis=-1))
        return eb.max_pool2d(h.reshape(1, 2, 2), 2)

    def grads(goes_back):
        def back(root, gradient=None):
            if goes_back:
                root.backward(gradient)
                model.zero_grad()

        with eb.options(cells=False, compile="plain"), eb.Graph(policy="none"):
            first, matrix = eb.input(x), eb.input(random.normal(size=(2, 4)))
            product = b @ eb.input(y)
            early = pooled(first)
            back(product)
            late = pooled(eb.input(z))
            back(early, [[[-0.2]]])
            turned = matrix.t()
            again = pooled(first)
            back(turned + 0 * b[0], seed)
            loss = eb.sum([eb.sum(eb.square(again)), product * 1.5, eb.sum(eb.square(late))])
        loss.backward()
        found = [parameter.grad() for parameter in (W, b, table)]
        model.zero_grad()
        return found

    for found, want in zip(grads(True), grads(False), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5)
