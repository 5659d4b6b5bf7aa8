"""Input graphs: what they are made of, and what is refused, with the place."""

import numpy as np
import pytest

import edbatch as eb
from tests.vertices.structures import STRUCTURES, dags, tree


def test_of_arrays():
    graph = eb.InputGraph(np.array([0, 0, 0, 2], np.int32), np.array([0, 1], np.uint8), [0, 0, 1])
    assert len(graph) == 3
    assert repr(graph) == "InputGraph(3 vertices, 2 edges)"
    for name, wanted in {"offsets": [0, 0, 0, 2], "children": [0, 1], "kinds": [0, 0, 1], "roots": [2]}.items():
        found = getattr(graph, name)
        assert found.tolist() == wanted
        found[...] = 77  # a copy
        assert getattr(graph, name).tolist() == wanted


def test_is_apart_from_the_callers_arrays():
    offsets, children = np.array([0, 0, 1]), np.array([0])
    graph = eb.InputGraph(offsets, children)
    children[0] = 9
    assert graph.children.tolist() == [0]


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


@pytest.mark.parametrize(
    ("offsets", "children", "message"),
    [
        ([0, 1], [0], "vertex 0 gathers 0: expected no circle"),
        ([0, 1, 2, 3], [1, 2, 0], "vertex 0 gathers 1 gathers 2 gathers 0: expected no circle"),
        ([0, 0, 1, 2], [2, 1], "vertex 1 gathers 2 gathers 1: expected no circle"),
        ([0, 0, 2], [0, 2], "child 1 of vertex 1 is 2, out of range for 2 vertices"),
        ([0, 0, 1], [-1], "child 0 of vertex 1 is -1, out of range for 2 vertices"),
        ([0, 2, 1], [0], "vertex 0 has children from 0 to 2 of 1"),
        ([0, 2, 1, 3], [0, 0, 0], "vertex 1 has children from 2 to 1 of 3"),
        ([0, -1, 1], [0], "vertex 0 has children from 0 to -1 of 1"),
        ([0, 1, 3], [0], "expected offsets from 0 to the number of children, 1, got [0, 1, 3]"),
        ([1, 1], [0], "expected offsets from 0 to the number of children"),
        ([], [], "expected offsets from 0 to the number of children"),
        ([0.0, 1.0], [0], "offsets: expected a list or an array of integers"),
        ([0, 1], [[0]], "children: expected a list or an array of integers"),
        ([0, 1], "a", "children: expected a list or an array of integers"),
        ([0, 1], [2**70], "children: expected a list or an array of integers"),
        ([[0], [1, 2]], [0], "offsets: expected a list or an array of integers"),
    ],
)
def test_what_is_no_dag(offsets, children, message):
    with pytest.raises(eb.EdBatchError) as error:
        eb.InputGraph(offsets, children)
    assert str(error.value).startswith("InputGraph: ")
    assert message in str(error.value)


def test_a_long_circle_is_not_shown_whole():
    n = 50
    with pytest.raises(eb.EdBatchError, match=r"vertex 0 gathers 1 .* gathers 7 gathers \.\.\.: expected no circle"):
        eb.InputGraph(np.arange(n + 1), (np.arange(n) + 1) % n)


def test_a_chain_may_be_long():
    n = 100_000
    graph = eb.InputGraph([*range(n), n - 1], np.arange(1, n))  # against the order of numbers
    assert graph.roots.tolist() == [0]


@pytest.mark.parametrize("kinds", [[0], [0, -1], [0.0, 1.0], [[0, 1]]])
def test_kinds(kinds):
    with pytest.raises(eb.EdBatchError, match="kind"):
        eb.InputGraph([0, 0, 0], [], kinds)


def test_samples_as_lists():
    graph = eb.InputGraph.of_lists([[(), (), (0, 1)], [(), (0,)]], [0, 0, 1, 0, 1])
    assert graph.offsets.tolist() == [0, 0, 0, 2, 2, 3]
    assert graph.children.tolist() == [0, 1, 3]
    for sample in ([(), (5,)], [(), (-1,)]):
        with pytest.raises(eb.EdBatchError, match=r"vertex 1 of sample 1 has children .*expected integers in \[0, 2\)"):
            eb.InputGraph.of_lists([[()], sample])
    with pytest.raises(eb.EdBatchError, match="expected lengths of at least 1"):
        eb.InputGraph.of_chains([2, 0])


def test_samples_as_tuples():
    with pytest.raises(eb.EdBatchError, match=r"of_tuples: an empty tuple in \(3, \(\)\)"):
        eb.InputGraph.of_tuples([1, (3, ())])
    deep = 0
    for leaf in range(5000):
        deep = (deep, leaf)
    graph, leaves = eb.InputGraph.of_tuples([deep])
    assert len(graph) == 10_001
    assert leaves[:3] == [0, 0, 1]


@pytest.mark.parametrize("name", STRUCTURES)
def test_joined_is_one_after_the_other(name):
    parts = [STRUCTURES[name](np.random.default_rng(seed)) for seed in range(3)]
    joined = eb.InputGraph.join(parts)
    n = np.cumsum([0, *map(len, parts)])
    assert len(joined) == n[-1]
    assert joined.kinds.tolist() == [kind for part in parts for kind in part.kinds.tolist()]
    assert joined.roots.tolist() == [n[at] + root for at, part in enumerate(parts) for root in part.roots.tolist()]


def test_order_has_children_first():
    for seed in range(20):
        graph = dags(np.random.default_rng(seed))
        place = np.empty(len(graph), np.int64)
        order = graph._order if len(graph._order) else np.arange(len(graph))
        assert sorted(order.tolist()) == list(range(len(graph)))
        place[order] = np.arange(len(graph))
        for vertex in range(len(graph)):
            assert all(place[child] < place[vertex] for child in graph._children_of(vertex))


def test_trees_are_as_recursion_goes():
    rng = np.random.default_rng(0)
    sample = tree(rng, 20)
    graph, leaves = eb.InputGraph.of_tuples([sample])
    found = []

    def go(part):
        found.append([go(one) for one in part] if isinstance(part, tuple) else part)
        return len(found) - 1

    go(sample)
    waiting = iter(leaves)
    assert found == [graph._children_of(v) if graph.kinds[v] else next(waiting) for v in range(len(graph))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eb.InputGraph.of_tuples(3), "of_tuples: expected a list of trees, got 3"),
        (lambda: eb.InputGraph.of_lists(None), "of_lists: expected samples, .* got None"),
        (lambda: eb.InputGraph.of_lists([[None]]), "of_lists: expected samples"),
        (lambda: eb.InputGraph.of_lists(["ab"]), "vertex 0 of sample 0 has children .*: expected integers"),
        (lambda: eb.InputGraph.of_lists([[(), (0.0,)]]), "vertex 1 of sample 0 has children .*: expected integers"),
        (lambda: eb.InputGraph.join(None), "join: expected a list of graphs, got None"),
        (lambda: eb.InputGraph.join([3]), "join: expected graphs, got 3"),
        (lambda: eb.InputGraph.of_chains([10**15]), "of_chains: expected what fits into memory"),
    ],
)
def test_what_is_no_structure(make, message):
    with pytest.raises(eb.EdBatchError, match=message):
        make()
