"""Graphs that are read and grow; errors; size; the end of a graph, and of a process."""

import gc
import subprocess
import sys
import weakref
from contextlib import suppress
from contextvars import copy_context

import numpy as np
import pytest

import edbatch as eb


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


def W(*shape, dtype="float32", keep=[]):  # noqa: B006 (alive as long as these tests)
    keep.append(eb.ParameterCollection(dtype=dtype))
    return keep[-1].add_parameters(shape, name="W")


def test_values_that_are_not_there():
    graph = eb.Graph()
    with suppress(KeyError), graph:
        x = eb.input([1.0])
        raise KeyError("mine")
    with pytest.raises(eb.EdBatchError, match="left by KeyError"):
        x.value()
    with pytest.raises(eb.EdBatchError, match="no graph"):
        eb.input([1.0])
    with eb.Graph(policy="sufficient", check_nan=True), np.errstate(invalid="ignore"):
        x = eb.log(eb.input([-1.0]))
        with pytest.raises(eb.EdBatchError, match=r"NaN in a result of log\(\[1\]\)"):
            x.value()
        with pytest.raises(eb.EdBatchError, match="no values: running it failed"):
            x.value()
    with eb.Graph(policy="sufficient"):
        y = eb.ParameterCollection().add_parameters((2, 2), name="W") @ eb.input([1.0, 2.0])
        gc.collect()
        with pytest.raises(eb.EdBatchError, match=r"W\[2,2\] was deleted"):
            y.value()


def test_blocks_that_are_left_too_often_or_elsewhere():
    with eb.Graph() as graph:
        x = eb.scalar(2)
    with pytest.raises(eb.EdBatchError, match="left more often than it was entered"):
        graph.__exit__(None, None, None)
    assert x.value() == 2
    graph, elsewhere = eb.Graph(), copy_context()
    elsewhere.run(graph.__enter__)
    assert elsewhere.run(eb.ones, 3).graph is graph
    graph.__exit__(None, None, None)
    with pytest.raises(eb.EdBatchError, match="no graph"):
        elsewhere.run(eb.ones, 3)


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
