"""Input graphs: what they are made of, and what is refused, with the place."""

import numpy as np

import edbatch as eb
from tests.vertices.structures import dags


def test_of_arrays():
    graph = eb.InputGraph(np.array([0, 0, 0, 2], np.int32), np.array([0, 1], np.uint8), [0, 0, 1])
    assert len(graph) == 3
    assert repr(graph) == "InputGraph(3 vertices, 2 edges)"
    for name, wanted in {"offsets": [0, 0, 0, 2], "children": [0, 1], "kinds": [0, 0, 1], "roots": [2]}.items():
        found = getattr(graph, name)
        assert found.tolist() == wanted
        found[...] = 77  # a copy
        assert getattr(graph, name).tolist() == wanted


def test_of_nothing_and_of_one():
    for graph in (
        eb.InputGraph([0], []),
        eb.InputGraph.of_lists([]),
        eb.InputGraph.of_lists([[], []]),
        eb.InputGraph.of_chains([]),
        eb.InputGraph.of_tuples([])[0],
        eb.InputGraph.join([]),
    ):
        assert len(graph) == 0
        assert graph.roots.tolist() == []
    assert len(eb.InputGraph([0, 0], [])) == 1
    graph, leaves = eb.InputGraph.of_tuples([5])
    assert (len(graph), leaves) == (1, [5])


def test_a_chain_may_be_long():
    n = 100_000
    graph = eb.InputGraph([*range(n), n - 1], np.arange(1, n))  # against the order of numbers
    assert graph.roots.tolist() == [0]


def test_samples_as_lists():
    graph = eb.InputGraph.of_lists([[(), (), (0, 1)], [(), (0,)]], [0, 0, 1, 0, 1])
    assert graph.offsets.tolist() == [0, 0, 0, 2, 2, 3]
    assert graph.children.tolist() == [0, 1, 3]


def test_samples_as_tuples():
    deep = 0
    for leaf in range(5000):
        deep = (deep, leaf)
    graph, leaves = eb.InputGraph.of_tuples([deep])
    assert len(graph) == 10_001
    assert leaves[:3] == [0, 0, 1]


def test_order_has_children_first():
    for seed in range(20):
        graph = dags(np.random.default_rng(seed))
        place = np.empty(len(graph), np.int64)
        order = graph._order if len(graph._order) else np.arange(len(graph))
        assert sorted(order.tolist()) == list(range(len(graph)))
        place[order] = np.arange(len(graph))
        for vertex in range(len(graph)):
            assert all(place[child] < place[vertex] for child in graph._children_of(vertex))
