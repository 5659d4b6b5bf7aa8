"""Suarez and Zhu's improved topological sort beside their algorithm in plain Python."""

from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.policy import Heuristic, TypedGraph, get_policy, lower_bound


def users_of(graph):
    """Per node its users."""
    users = [[] for _ in range(len(graph))]
    for node, (a, b) in enumerate(zip(graph.indptr, graph.indptr[1:], strict=False)):
        for operand in graph.operands[a:b].tolist():
            users[operand].append(node)
    return users


def named(graph, schedule):
    """Batches as sets of nodes, in order."""
    return [frozenset(batch.tolist()) for batch in schedule.batches()]


def pools(graph):
    """Improved sort: nodes by their distance from a root, the farthest first."""
    users = users_of(graph)

    def label(node):
        return max((label(user) + 1 for user in users[node]), default=0)

    labels = [label(node) for node in range(len(graph))]
    return [
        frozenset(node for node in range(len(graph)) if labels[node] == at and graph.types[node] == kind)
        for at in sorted(set(labels), reverse=True)
        for kind in sorted({graph.types[node] for node in range(len(graph)) if labels[node] == at})
    ]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6), nodes=st.sampled_from([3, 12, 40]))
def test_any_graph(random_graph, seed, types, nodes):
    graph = random_graph(seed, nodes, types)
    schedule = get_policy("improved-sort").schedule(graph)
    schedule.validate(graph)
    assert named(graph, schedule) == pools(graph)
    assert len(schedule) >= lower_bound(graph)


def test_improved_counts_from_the_roots_and_depth_from_the_inputs():
    graph = TypedGraph.from_lists(["a", "a", "b", "c"], [[], [], [1], [0, 2]])
    assert named(graph, Heuristic("depth").schedule(graph)) == [{0, 1}, {2}, {3}]
    assert named(graph, Heuristic("improved-sort").schedule(graph)) == [{1}, {0}, {2}, {3}]
