import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.policy import TypedGraph, get_policy, lower_bound


def test_successors_are_the_reversed_edges(random_graph):
    for seed in range(50):
        graph = random_graph(seed)
        forward = sorted(
            (int(operand), node)
            for node in range(len(graph))
            for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]]
        )
        indptr, users = graph.successors
        backward = [(node, int(user)) for node in range(len(graph)) for user in users[indptr[node] : indptr[node + 1]]]
        assert backward == forward


ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("types", "indptr", "operands", "names", "message"),
    [
        ([0, 1], [0, 0, 1], [0], ["a"], "node 1: type 1, but there are 1 names"),
        ([-1], [0, 0], [], ["a"], "node 0: type -1"),
        ([0, 0], [0, 0, 1], [2], ["a"], "node 1: operand 2, but there are 2 nodes"),
        ([0, 0], [0, 1, 1], [-1], ["a"], "node 0: operand -1"),
        ([0, 0], [0, 1], [0], ["a"], "indptr must have 3 entries"),
        ([0, 0], [0, 1, 1], [0, 0], ["a"], "indptr must have 3 entries from 0 to 2"),
        ([0, 0, 0], [0, 2, 1, 2], [1, 1], ["a"], "node 1: indptr falls there"),
        ([0], [0, 0], [], ["a", "a"], "two types are named 'a'"),
        ([0], [0, 1], [0], ["a"], "cycle through node 0 -> 0"),
        ([0, 0, 0], [0, 1, 2, 3], [1, 2, 0], ["a"], "cycle through node"),
        ([0.5], [0, 0], [], ["a"], "types: expected integers, got 0.5 of float64"),
        ([0], [0, 0], [1.0], ["a"], "operands: expected integers, got 1.0 of float64"),
        ([2**32], [0, 0], [], ["a"], "types: expected integers from -2147483648 to 2147483647, got 4294967296"),
        ([0], [0, 2], [[0], [0, 0]], ["a"], "operands: expected integers, got lists in lists"),
        ([0], [0, 1], ENDLESS, ["a"], "operands: expected integers, got lists in lists"),
        ([0], [0, 0], [], 5, "names: expected the name of each type"),
        ([0], [0, 0], [], [[1]], "names: expected the name of each type"),
    ],
)
def test_bad_columns_are_named(types, indptr, operands, names, message):
    with pytest.raises(EdBatchError, match=message):
        TypedGraph.checked(types, indptr, operands, names)


@pytest.mark.parametrize(
    ("operands", "message"),
    [([[], [0, 2], [1]], r"node 1 -> 2 -> 1$|node 2 -> 1 -> 2$"), ([[(at + 1) % 30] for at in range(30)], r"\.\.\.")],
)
def test_a_cycle_is_shown_in_the_direction_of_the_data_and_shortened(operands, message):
    with pytest.raises(EdBatchError, match=message):
        TypedGraph.from_lists(["a"] * len(operands), operands)


@pytest.mark.parametrize("use", [lower_bound, get_policy("depth").schedule, get_policy("critical-path").schedule])
def test_a_graph_of_expressions_is_answered_with_the_cure(use):
    with eb.Graph() as graph, pytest.raises(EdBatchError, match=r"expected a TypedGraph \(graph.typed_graph\(\)\)"):
        use(graph)


def brute_force(graph):
    """Sum over types of the most nodes of the type on one path, by recursion over operands."""

    def rows(node):
        return graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist()

    def most(node, kind):
        mine = int(graph.types[node] == kind)
        return mine + max((most(operand, kind) for operand in rows(node)), default=0)

    return sum(max((most(node, kind) for node in range(len(graph))), default=0) for kind in range(len(graph.names)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 5))
def test_bounds_are_those_of_brute_force(random_graph, seed, types):
    graph = random_graph(seed, 14, types)
    assert lower_bound(graph) == brute_force(graph)
