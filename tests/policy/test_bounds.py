import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.policy import TypedGraph, lower_bound
from tests.policy.exact import minimum_batches


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


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 4))
def test_it_is_below_the_optimum(random_graph, seed, types):
    graph = random_graph(seed, 12, types)
    assert lower_bound(graph) <= minimum_batches(graph)


def test_names_without_nodes_count_nothing():
    graph = TypedGraph.checked([1], [0, 0], [], ["unused", "used"])
    assert lower_bound(graph) == 1


@pytest.mark.parametrize(
    ("name", "bound"),
    [("treenn-B64-G0", 28), ("bilstm-B64-G0", 324), ("lattice-B128-G0", 239), ("seq2seq-B64-G0", 110)],
)
def test_bounds_of_recorded_graphs(recorded, name, bound):
    assert lower_bound(recorded(name)) == bound
