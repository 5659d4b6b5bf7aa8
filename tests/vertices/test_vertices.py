"""What vertex functions give, and what changes between their calls."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import edbatch as eb
from edbatch.compiling import compiled
from tests.interrupts import FOREVER, Interrupt, expect_none_open
from tests.vertices.structures import chains


def adding(v):
    """A sum over children, and what is pulled."""
    v.scatter(eb.sum([v.pull(), *v.gather()]))


def sums(graph, X):
    """What `adding` gives, in NumPy."""
    found = np.array(X, np.float64)
    done = np.zeros(len(graph), bool)
    while not done.all():
        for v in range(len(graph)):
            children = graph._children_of(v)
            if not done[v] and done[children].all():
                found[v] += found[children].sum(0)
                done[v] = True
    return found


DIAMOND = eb.InputGraph.of_lists([[(1, 2, 1), (3,), (3,), ()]])  # numbered against the order; a child twice


def test_values_and_gradients_by_hand():
    X = np.arange(8.0).reshape(4, 2)
    with eb.Graph(dtype="float64"):
        given = eb.array(X)
        out = eb.vertex(adding)(DIAMOND, given)
        root = out.scattered[0]
        eb.dot(root, np.array([1.0, 10.0])).backward()
    np.testing.assert_array_equal(out.scattered.value(), sums(DIAMOND, X))
    np.testing.assert_array_equal(given.gradient(), np.outer([1, 2, 1, 3], [1, 10]))


def passing_on(v):
    """What is pulled, of every third vertex of a chain; what the one before has, of the others."""
    if v.kind:
        v.gather()
        v.scatter(v.pull())
    else:
        v.scatter(v.gather(0))


@pytest.mark.parametrize("way", [nullcontext, compiled.at_once], ids=["interpreted", "compiled"])
def test_more_vertices_than_a_block_has(way):
    """Of a long chain, and of many that are numbered against the order."""
    n = 3 * 2048 + 5  # so many are put at once
    X = np.random.default_rng(0).normal(size=(n, 1))
    kinds = (np.arange(n) % 3 == 0).astype(int)
    chain = eb.InputGraph(np.maximum(np.arange(n + 1) - 1, 0), np.arange(n - 1), kinds)
    pairs = eb.InputGraph(np.minimum(np.arange(n + 1), n // 2), np.arange(n - 1, n - 1 - n // 2, -1))
    with way(), eb.Graph(dtype="float64") as graph:
        passed = eb.vertex(passing_on, passing_on)(chain, None, X[::3]).scattered
        before = graph.n
        added = eb.vertex(adding)(pairs, X).scattered
        assert before == len(X[::3])  # only inputs
        values = passed.value(), added.value()
    np.testing.assert_array_equal(values[0], X[np.arange(n) // 3 * 3])
    np.testing.assert_allclose(values[1], X + np.where(np.arange(n)[:, None] < n // 2, X[::-1], 0), rtol=1e-13)


def test_several_kinds():
    graph = eb.InputGraph.of_lists([[(), (0,), (), (1, 2)]], [0, 1, 0, 2])

    def leaf(v):
        v.scatter(v.pull())

    def one(v):
        v.scatter(v.gather(0)[:1], v.gather(0)[1:])
        v.push(v.gather(0))

    def two(v):
        (a, b), c = v.gather(0), v.gather(-1)
        v.scatter(eb.concatenate([a, b]) + c)
        v.push(eb.concatenate([b, a]))
        assert (v.kind, v.n_children) == (2, 2)

    with eb.Graph():
        out = eb.vertex(leaf, one, two)(graph, np.array([[1.0, 2.0], [3.0, 4.0]]))
        assert [len(out.of(kind)) for kind in range(3)] == [2, 1, 1]
        np.testing.assert_array_equal(out.of(0).scattered.value(), [[1, 2], [3, 4]])
        np.testing.assert_array_equal(out.of(1).scattered[1].value(), [[2]])
        np.testing.assert_array_equal(out.of(2).scattered.value(), [[4, 6]])
        np.testing.assert_array_equal(out.pushed.value(), [[1, 2], [2, 1]])
        assert out.pushed_by.tolist() == [1, 3]
        assert out.of(2).numbers.tolist() == [3]
        assert repr(out) == "Vertices(4)"
        with pytest.raises(eb.EdBatchError, match=r"vertices 0 and 1 scatter results of several shapes"):
            assert out.scattered
        with pytest.raises(eb.EdBatchError, match=r"Vertices\.of\(3\): there is no vertex of that kind"):
            out.of(3)
        with pytest.raises(eb.EdBatchError, match="no vertex has called push"):
            assert out.of(0).pushed


class Tied:
    """A model whose methods are vertex functions."""

    def __init__(self):
        self.model = eb.ParameterCollection(seed=0)
        self.W = self.model.add_parameters((2, 2), name="W")
        self.scale = 1.0

    @eb.vertex
    def node(self, v):
        v.scatter(eb.tanh(self.W @ eb.sum([v.pull(), *v.gather()])) * self.scale)

    @eb.cell
    def cell(self, x):
        return eb.tanh(self.W @ x) * self.scale

    @eb.vertex
    def of_cell(self, v):
        v.scatter(self.cell(eb.sum([v.pull(), *v.gather()])))


def expected(W, scale, graph, X):
    found = np.zeros_like(X)
    for v in graph._order if len(graph._order) else range(len(graph)):
        found[v] = np.tanh(W @ (X[v] + found[graph._children_of(v)].sum(0))) * scale
    return found


@pytest.mark.parametrize("name", ["node", "of_cell"])
def test_nothing_is_kept_between_calls(name):
    rng, tied = np.random.default_rng(0), Tied()
    X = rng.normal(size=(4, 2))
    for scale, inside in ((1.0, False), (2.0, False), (0.5, True)):
        with eb.Graph() as graph:
            if inside:
                _ = getattr(tied, name)(DIAMOND, X).scattered.value()
            tied.W.set_value(rng.normal(size=(2, 2)))
            tied.scale = scale
            if inside and name == "of_cell":
                graph = eb.Graph()  # within one graph a cell's attributes stay
            with graph:
                found = getattr(tied, name)(DIAMOND, X).scattered.value()
        np.testing.assert_allclose(found, expected(tied.W.value(), scale, DIAMOND, X), rtol=1e-5)
    assert "vertex function Tied." in repr(tied.node)


def test_what_is_around_a_function():
    """Expressions of the graph, parameters and numbers are the same for all vertices."""
    with eb.Graph() as graph:
        other = eb.input([1.0, 2.0]) * 3

        def of_vertex(v):
            if not v.gather():
                float(eb.sum(other))  # runs what has been recorded around it
            made = eb.input(np.array([5.0, 6.0]))
            eb.forward([other * 1])
            v.scatter(v.pull() * other[::-1] + made + np.ones(2))

        found = eb.vertex(of_vertex)(eb.InputGraph.of_chains([2, 1]), np.ones((3, 2)))
        np.testing.assert_array_equal(found.scattered.value(), [[12, 10]] * 3)
        assert "Graph" in repr(graph)


def test_threads():
    rng = np.random.default_rng(0)
    graphs = [chains(rng) for _ in range(8)]
    tied = Tied()

    def run(graph):
        X = np.random.default_rng(len(graph)).normal(size=(len(graph), 2))
        with eb.Graph():
            return tied.of_cell(graph, X).scattered.value()

    one_by_one = list(map(run, graphs))
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for found, wanted in zip(pool.map(run, graphs), one_by_one, strict=True):
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.cpu
def test_interrupts():
    """The next graph is right, whenever one comes, and so is what was recorded before in the same one, or refused."""
    tied = Tied()
    X = np.ones((4, 2))

    def run():
        with eb.Graph("sufficient"):
            return tied.of_cell(DIAMOND, X).scattered.value()

    wanted = run()
    counted = Interrupt(FOREVER)
    counted.run(run)
    for at in range(1, counted.passed, 7):
        graph = eb.Graph("sufficient")
        before = []

        def work(graph=graph, before=before):
            with graph:
                before.append(eb.input([1.0, 2.0]) * 2)
                tied.of_cell(DIAMOND, X)

        Interrupt(at).run(work)
        expect_none_open()
        if before:
            try:
                np.testing.assert_array_equal(before[0].value(), [2, 4])
            except eb.EdBatchError as error:
                assert "interrupted" in str(error) or "KeyboardInterrupt" in str(error)  # noqa: PT017
        np.testing.assert_array_equal(run(), wanted)
