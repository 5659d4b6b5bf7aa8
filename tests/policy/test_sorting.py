"""Suarez and Zhu's topological sorts beside their algorithm in plain Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.policy import Heuristic, TypedGraph, get_policy, lower_bound


def lists(graph):
    """Per node its operands, and per node its users."""
    operands = [graph.operands[a:b].tolist() for a, b in zip(graph.indptr, graph.indptr[1:], strict=False)]
    users = [[] for _ in operands]
    for node, row in enumerate(operands):
        for operand in row:
            users[operand].append(node)
    return operands, users


def named(graph, schedule):
    """Batches as sets of nodes, in order."""
    return [frozenset(batch.tolist()) for batch in schedule.batches()]


def pools(graph):
    """Improved sort: nodes by their distance from a root, the farthest first."""
    _, users = lists(graph)

    def label(node):
        return max((label(user) + 1 for user in users[node]), default=0)

    labels = [label(node) for node in range(len(graph))]
    return [
        frozenset(node for node in range(len(graph)) if labels[node] == at and graph.types[node] == kind)
        for at in sorted(set(labels), reverse=True)
        for kind in sorted({graph.types[node] for node in range(len(graph)) if labels[node] == at})
    ]


def joining(graph):
    """The node that joins all samples, the deepest that joins two parts of the graph, and what reads it."""
    operands, _ = lists(graph)
    depth = dict.fromkeys(range(len(graph)), 0)
    for node in graph.topological.tolist():
        depth[node] = max((depth[operand] + 1 for operand in operands[node]), default=0)
    parts, taken, found = [], set(), set()
    for node in sorted(filter(operands.__getitem__, depth), key=depth.get):
        inputs = {operand for operand in operands[node] if not operands[operand]} - taken
        joined = [part for part in parts if part.intersection(operands[node])]
        parts = [part for part in parts if part not in joined] + [{node}.union(*joined)]
        taken |= inputs
        if len(joined) + len(inputs) > 1:
            found = {node}
        elif found.intersection(operands[node]):
            found.add(node)
    return found if len(parts) == 1 else set()


def queues(graph):
    """Standard sort: a queue of nodes for every sample, without what joins them all."""
    operands, users = lists(graph)
    there = set(range(len(graph))) - joining(graph)
    roots = [node for node in sorted(there) if not there.intersection(users[node])]
    group = {node: {node} for node in there}
    for node in there:
        for operand in operands[node]:
            if operands[operand]:
                joined = group[node] | group[operand]
                group.update(dict.fromkeys(joined, joined))
    found, seen = {}, set()

    def visit(node, inside):
        """Depth first; an input goes to the queue of what takes it."""
        if node in seen:
            return
        seen.add(node)
        own = inside if inside and not operands[node] else min(group[node])
        for operand in operands[node]:
            visit(operand, (own,))
        found.setdefault(own[0] if isinstance(own, tuple) else own, []).append(node)

    for root in roots:
        visit(root, None)
    return list(found.values())


def columns(graph):
    """Runs the first node of every queue, type by type, as often as there are nodes; one that waits for another queue
    is left for later."""
    operands, _ = lists(graph)
    waiting, joins = queues(graph), joining(graph)
    done, batches = set(), []
    while any(waiting):
        column = [queue for queue in waiting if queue and done.issuperset(operands[queue[0]])]
        heads = [queue.pop(0) for queue in column]
        kinds = sorted({graph.types[node] for node in heads})
        batches += [frozenset(node for node in heads if graph.types[node] == kind) for kind in kinds]
        done.update(heads)
    return batches + [batch & joins for batch in pools(graph) if batch & joins]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6), nodes=st.sampled_from([3, 12, 40]))
def test_any_graph(random_graph, seed, types, nodes):
    graph = random_graph(seed, nodes, types)
    for name, expected in (("standard-sort", columns(graph)), ("improved-sort", pools(graph))):
        schedule = get_policy(name).schedule(graph)
        schedule.validate(graph)
        assert named(graph, schedule) == expected
        assert len(schedule) >= lower_bound(graph)


@pytest.mark.parametrize("unread", [0, 1, 9])
def test_what_nobody_reads_leaves_samples_side_by_side(unread):
    graph = TypedGraph.from_lists(
        ["x", "a", "b", "x", "a", "b", "sum", "scale", *["u"] * unread],
        [[], [0], [1], [], [3], [4], [2, 5], [6], *([at] for at in [1, *range(8, 7 + unread)][:unread])],
    )
    found = named(graph, Heuristic("standard-sort").schedule(graph))
    assert found[:3] == [{0, 3}, {1, 4}, {2, 5}]
    assert found[3:] == [*({8 + at} for at in range(unread)), {6}, {7}]


def test_what_nobody_reads_in_a_graph_of_expressions():
    batches = []
    for unread in (False, True):
        with eb.Graph(policy="standard-sort") as graph:
            xs = [eb.tanh(eb.exp(eb.input([float(n)]))) for n in range(4)]
            if unread:
                eb.sigmoid(xs[0])
            eb.sum(xs).value()
        batches.append(graph.report().batches)
    assert batches == [3, 4]


def test_improved_counts_from_the_roots_and_depth_from_the_inputs():
    graph = TypedGraph.from_lists(["a", "a", "b", "c"], [[], [], [1], [0, 2]])
    assert named(graph, Heuristic("depth").schedule(graph)) == [{0, 1}, {2}, {3}]
    assert named(graph, Heuristic("improved-sort").schedule(graph)) == [{1}, {0}, {2}, {3}]
