"""Random programs under every policy against NumPy; growing graphs; errors; size."""

import gc
import subprocess
import sys
import weakref
from contextlib import suppress
from contextvars import copy_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from tests.oracle import ORACLE

POLICIES = ["none", "depth", "agenda", "sufficient", "critical-path"]
DIM = 4

# One step of a random program: name, operand choices, an integer to play with.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["tanh", "add", "multiply", "W", "V", "halves", "lookup", "sum_list", "half", "flip", "scaled", "softmax",
             "outer", "ce", "read", "constant"]
        ),
        st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip


class Program:
    """Runs steps twice: as a graph, and at once in NumPy with the tests' oracle."""

    def __init__(self, policy):
        self.model = eb.ParameterCollection(seed=3, dtype="float64")
        self.W = self.model.add_parameters((DIM, DIM), name="W")
        self.V = self.model.add_parameters((DIM, DIM), name="V")
        self.table = self.model.add_lookup_parameters((7, DIM), name="table", init="glorot")
        self.graph = eb.Graph(policy=policy, dtype="float64")

    def run(self, steps):
        xs, wants, scalars, scalar_wants = [], [], [], []
        with self.graph:
            for number in range(3):
                wants.append(np.linspace(-1, 1, DIM) * (number + 1) / 3)
                xs.append(eb.input(wants[-1]))
            for name, choices in steps:
                picked = [choice % len(xs) for choice in choices]
                a, want_a = xs[picked[0]], wants[picked[0]]
                b, want_b = xs[picked[-1]], wants[picked[-1]]
                if name == "tanh":
                    x, want = eb.tanh(a), ORACLE["tanh"](want_a)
                elif name == "add":
                    x, want = 0.5 * a + b / 2, 0.5 * want_a + want_b / 2
                elif name == "multiply":
                    x, want = a * b, want_a * want_b
                elif name in ("W", "V"):
                    matrix = getattr(self, name)
                    x, want = matrix @ a, matrix.value() @ want_a
                elif name == "halves":
                    left, right = eb.split(a, 2)
                    x, want = eb.concatenate([right, left]), np.roll(want_a, DIM // 2)
                elif name == "lookup":
                    x, want = eb.lookup(self.table, choices[0] % 7), self.table.value()[choices[0] % 7]
                elif name == "sum_list":
                    x = eb.mean([xs[i] for i in picked])
                    want = np.mean([wants[i] for i in picked], axis=0)
                elif name == "half":
                    x, want = eb.concatenate([a[1:3], b[:2]]), np.append(want_a[1:3], want_b[:2])
                elif name == "flip":
                    x, want = eb.flip(a), want_a[::-1]
                elif name == "scaled":
                    x, want = a * a[choices[0] % DIM], want_a * want_a[choices[0] % DIM]
                elif name == "softmax":
                    x, want = eb.softmax(a), ORACLE["softmax"](want_a, 0)
                elif name == "outer":
                    x = (eb.reshape(a, (DIM, 1)) @ eb.reshape(b, (1, DIM))) @ b
                    want = np.outer(want_a, want_b) @ want_b
                elif name == "ce":
                    scalars.append(eb.cross_entropy(a, choices[0] % DIM))
                    scalar_wants.append(ORACLE["cross_entropy"](want_a, choices[0] % DIM))
                    continue
                elif name == "constant":
                    x, want = eb.zeros(DIM) + eb.ones(DIM) - a, 1 - want_a
                else:  # read in the middle: the graph goes on growing
                    np.testing.assert_allclose(a.value(), want_a, rtol=1e-9, atol=1e-12)
                    continue
                xs.append(x)
                wants.append(want)
        for got, want in zip(eb.forward(xs + scalars), wants + scalar_wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_random_programs(policy, steps):
    Program(policy).run(steps)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_random_programs_with_a_learned_policy(steps):
    Program(None).run(steps)


def test_reading_runs_what_is_pending_once():
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0, 2.0])
        y = eb.tanh(x)
        first = y.value()
        ran = graph.report().batches
        np.testing.assert_array_equal(y.value(), first)
        assert graph.report().batches == ran
        z = eb.exp(y) + x
        np.testing.assert_allclose(z.value(), np.exp(first) + [1, 2], rtol=1e-6)
        assert graph.report().batches == ran + 2
    first[:] = 0  # the caller's own copy
    np.testing.assert_allclose(y.value(), np.tanh([1, 2]), rtol=1e-6)


def test_arenas_grow_and_keep_their_values():
    with eb.Graph(policy="sufficient"):
        x = eb.input(np.ones(3))
        seen = [x]
        for _ in range(300):
            x = x + 1
            seen.append(x)
            x.value()
        values = eb.forward(seen)
    np.testing.assert_array_equal(np.array(values)[:, 0], np.arange(1, 302))


def test_what_has_run_keeps_the_values_of_its_parameters():
    model = eb.ParameterCollection()
    W = model.add_parameters((2, 2), init=1.0)
    with eb.Graph(policy="sufficient"):
        W.set_value([[2, 0], [0, 2]])
        y = W @ eb.input([1.0, 2.0])
        np.testing.assert_array_equal(y.value(), [2, 4])
        W.set_value(np.zeros((2, 2)))
        np.testing.assert_array_equal(y.value(), [2, 4])


@pytest.mark.parametrize("cells", [True, False])
def test_a_graph_that_grows_after_parameters_changed_reads_the_new_values(cells):
    """As values too: products and cells always did."""
    W = eb.ParameterCollection().add_parameters((2, 2), init=1.0)

    @eb.cell
    def doubled(x):
        return eb.parameter(W) * 2 + x

    with eb.options(cells=cells), eb.Graph(policy="sufficient"):
        x = eb.zeros((2, 2))
        for value in (1.0, 3.0, 1.0):
            W.set_value(np.full((2, 2), value))
            for y in (eb.square(W) + x, eb.parameter(W) ** 2, W[0] * W[1], doubled(x) * value / 2, W @ W / 2):
                assert np.all(y.value() == value**2), value


def test_products_with_different_parameters_batch_as_values():
    model = eb.ParameterCollection(seed=2)
    experts = [model.add_parameters((3, 4)) for _ in range(5)]
    with eb.Graph(policy="sufficient") as graph:
        xs = [np.linspace(0, 1, 4) * i for i in range(5)]
        got = eb.forward([eb.parameter(W) @ eb.input(x) for W, x in zip(experts, xs, strict=True)])
    np.testing.assert_allclose(got, [W.value() @ x for W, x in zip(experts, xs, strict=True)], rtol=1e-5)
    assert graph.report().batches == 1


def test_different_attributes_do_not_meet_in_a_batch():
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([-1.0, 1.0])
        got = eb.forward([eb.elu(x, 1.0), eb.elu(x, 0.5), eb.elu(x, 1.0)])
    np.testing.assert_allclose(got[0][0] * 0.5, got[1][0], rtol=1e-6)
    assert graph.report().batches == 2


def test_constants_and_inputs_cost_no_batch():
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0]) + eb.zeros(1)
        eb.forward([x, eb.scalar(3), eb.ones(2), eb.input([[1.0]])])
    assert graph.report().batches == 1


def test_an_empty_graph_and_an_empty_list():
    assert eb.forward([]) == []
    with eb.Graph() as graph:
        pass
    assert graph.report().batches == 0
    assert "none yet" in str(graph.report())


def test_a_million_nodes():
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([0.0])
        one = eb.input([1.0])
        tips = []
        for _ in range(1000):
            y = x
            for _ in range(1000):
                y = y + one
            tips.append(y)
        values = eb.forward(tips)
    assert len(graph.typed_graph()) == 1_000_000
    np.testing.assert_array_equal(values, np.full((1000, 1), 1000.0))
    assert graph.report().batches == 1000


def test_buffers_are_reused_and_values_are_not_shared():
    def run(value):
        with eb.Graph(policy="sufficient"):
            return eb.tanh(eb.input(np.full(5000, value))).value()

    first = run(1.0)
    gc.collect()
    second = run(2.0)
    assert first[0] != second[0]
    np.testing.assert_allclose(first, np.tanh(1.0), rtol=1e-6)


def test_a_graph_dies_with_its_last_expression():
    model = eb.ParameterCollection()
    W = model.add_parameters((2, 2))
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0]) * 3 + eb.zeros(2) - eb.ones(2) / 2
        y = eb.parameter(W) @ x
        y.value()
    alive = weakref.ref(graph)
    del graph, x
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


def test_not_a_number_is_a_constant_like_any_other():
    with eb.Graph(policy="sufficient"):
        x = eb.scalar(1) * float("nan") + float("nan")
        assert np.isnan(x.value())


class TestErrors:
    def test_value_after_the_block_was_left_by_an_exception(self):
        graph = eb.Graph()
        with suppress(KeyError), graph:
            x = eb.input([1.0])
            raise KeyError("mine")
        with pytest.raises(eb.EdBatchError, match="left by KeyError"):
            x.value()
        assert graph.policy is None

    def test_other_graph(self):
        with eb.Graph():
            x = eb.input([1.0])
        with eb.Graph():
            y = eb.input([1.0])
            for build in (lambda: x + y, lambda: eb.concatenate([y, x]), lambda: eb.sum([y, x]), lambda: eb.dot(x, y)):
                with pytest.raises(eb.EdBatchError, match="another graph"):
                    build()
            with pytest.raises(eb.EdBatchError, match="value 1: an expression of another graph"):
                eb.forward([y, x])

    def test_shape_mismatch_at_the_call(self):
        model = eb.ParameterCollection()
        W = model.add_parameters((5, 64), name="W")
        with eb.Graph():
            h = eb.input([1.0, 2.0])
            with pytest.raises(eb.EdBatchError, match=r"matmul\(W\[5,64\], \[2\]\): inner sizes differ: 64 .* 2 rows"):
                W @ h
            with pytest.raises(eb.EdBatchError, match=r"add\(\[2\], \[3\]\): shapes do not broadcast"):
                h + eb.zeros(3)
            with pytest.raises(eb.EdBatchError, match="one shape"):
                eb.sum([h, eb.zeros(3)])

    @pytest.mark.parametrize("build", [eb.sum, eb.mean, eb.maximum, eb.logsumexp, eb.concatenate, eb.stack])
    def test_empty_list(self, build):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match="at least one expression"):
            build([])

    def test_index_out_of_range(self):
        def take(x, index: int):
            return eb.pick(x, index)

        model = eb.ParameterCollection()
        table = model.add_lookup_parameters((3, 2), name="table")
        with eb.Graph():
            x = eb.input([1.0, 2.0])
            for build in (
                lambda: eb.lookup(table, 3),
                lambda: x[2],
                lambda: eb.pick(x, -3),
                lambda: eb.cross_entropy(x, 2),
                lambda: eb.hinge(x, 5),
            ):
                with pytest.raises(eb.EdBatchError, match="out of range"):
                    build()
            with pytest.raises(eb.EdBatchError, match="expected an integer"):
                eb.pick(x, 0.5)
            for build in (
                lambda: eb.cross_entropy(x, True),
                lambda: eb.cross_entropy(x, True, label_smoothing=0.1),
                lambda: eb.hinge(x, False),
                lambda: eb.pick(x, True),
                lambda: eb.lookup(table, False),
                lambda: table[True],
                lambda: x[True],
                lambda: eb.cell(take)(x, True),
            ):
                with pytest.raises(eb.EdBatchError, match="expected an integer, got bool"):
                    build()
            with pytest.raises(eb.EdBatchError, match="is empty"):
                x[1:1]

    def test_left_more_often_than_entered(self):
        with eb.Graph() as graph:
            x = eb.scalar(2)
        with pytest.raises(eb.EdBatchError, match="left more often than it was entered"):
            graph.__exit__(None, None, None)
        assert x.value() == 2

    def test_left_in_another_thread(self):
        graph, elsewhere = eb.Graph(), copy_context()
        elsewhere.run(graph.__enter__)
        assert elsewhere.run(eb.ones, 3).graph is graph
        graph.__exit__(None, None, None)
        with pytest.raises(eb.EdBatchError, match="no graph"):
            elsewhere.run(eb.ones, 3)

    def test_no_graph(self):
        with pytest.raises(eb.EdBatchError, match="no graph"):
            eb.input([1.0])

    def test_no_operand(self):
        with eb.Graph():
            for wrong in ("text", None, [1, 2]):
                with pytest.raises(eb.EdBatchError, match="expected"):
                    eb.tanh(wrong)

    def test_nan_on_request(self):
        with eb.Graph(policy="sufficient", check_nan=True), np.errstate(invalid="ignore"):
            x = eb.log(eb.input([-1.0]))
            with pytest.raises(eb.EdBatchError, match=r"NaN in a result of log\(\[1\]\)"):
                x.value()
            with pytest.raises(eb.EdBatchError, match="no values: running it failed"):
                x.value()

    def test_mixed_dtypes(self):
        model = eb.ParameterCollection(dtype="float64")
        W = model.add_parameters((2, 2))
        with eb.Graph(), pytest.raises(eb.EdBatchError, match="mix float32 and float64"):
            W @ eb.input([1.0, 2.0])
        with pytest.raises(eb.EdBatchError, match="expected float32 or float64"):
            eb.Graph(dtype="int32")

    def test_truth_of_an_expression(self):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match="not known"):
            bool(eb.scalar(1))

    def test_deleted_model(self):
        def build():
            return eb.ParameterCollection().add_parameters((2, 2), name="W") @ eb.input([1.0, 2.0])

        with eb.Graph(policy="sufficient"):
            y = build()
            gc.collect()
            with pytest.raises(eb.EdBatchError, match=r"W\[2,2\] was deleted"):
                y.value()


@pytest.mark.parametrize(
    "dtype", [None, "abc", 3, (2, 2), "int32", "float16", ">f4", {}, np.ones(2), np.float32(1), complex, object()]
)
def test_a_dtype_that_no_value_has_is_refused_where_it_is_given(dtype):
    for owner in (eb.Graph, eb.ParameterCollection):
        with pytest.raises(eb.EdBatchError, match="expected float32 or float64"):
            owner(dtype=dtype)
    with eb.Graph():  # what graphs share is as it was
        x = eb.tanh(eb.input([0.0, 100.0]))
    assert x.value().tolist() == [0, 1]


AT_EXIT = """
import threading
import edbatch as eb
with eb.Graph(policy="sufficient"):
    x = eb.ones(3) * 2
print(x.value())
threading.kept = x
"""


@pytest.mark.cpu  # another process
def test_the_end_of_a_process_is_silent_wherever_a_graph_was_kept():
    """What releasing needs may be gone before: a module's names are taken away in their order."""
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[2. 2. 2.]\n", "")


@pytest.mark.parametrize("odd", [None, 3, 1.5, "x"])
def test_what_is_no_expression(odd):
    with eb.Graph(policy="sufficient") as graph, eb.Graph() as other:
        foreign = eb.ones(())
    with graph:
        x = eb.sum(eb.tanh(eb.ones(2)))
    for use in (graph.value, graph.backward, graph.gradient, lambda one: graph.values([x, one])):
        with pytest.raises(eb.EdBatchError, match="expected an expression, got"):
            use(odd)
        with pytest.raises(eb.EdBatchError, match="an expression of another graph"):
            use(foreign)
    if odd != "x":
        with pytest.raises(eb.EdBatchError, match="values: expected a list of expressions, got"):
            graph.values(odd)
    assert graph.values(iter([x]))[0] == x.value()
    assert other.n == 1
