import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, TypedGraph, lower_bound
from edbatch.policy.heuristics import RULES
from tests.policy.exact import minimum_batches


def ancestors(graph):
    """bool[n, n]: [v, u] when u is a proper ancestor of v."""
    above = np.zeros((len(graph), len(graph)), bool)
    for node in graph.topological:
        for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]]:
            above[node] |= above[operand]
            above[node, operand] = True
    return above


def direct(graph):
    """bool[n, n]: [v, u] when u is an operand of v."""
    users = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    edges = np.zeros((len(graph), len(graph)), bool)
    edges[users, graph.operands] = True
    return edges


def check_rule(graph, schedule, value):
    """Every batch must be all ready nodes of a type of largest value(remaining, ready nodes, type)."""
    remaining = np.ones(len(graph), bool)
    waits = direct(graph)
    for batch, kind in zip(schedule.batches(), schedule.types, strict=True):
        ready = remaining & ~(waits & remaining).any(axis=1)
        values = {
            int(other): value(remaining, ready & (graph.types == other), other)
            for other in set(graph.types[ready].tolist())
        }
        assert values[kind] == max(values.values())
        assert sorted(batch.tolist()) == np.flatnonzero(ready & (graph.types == kind)).tolist()
        remaining[batch] = False


def ratio_rule(graph, before):
    """|READY| / |TOTAL| by brute force; `before` says what a node waits for."""

    def value(remaining, ready, kind):
        same = remaining & (graph.types == kind)
        total = same & ~(before & same).any(axis=1)
        return ready.sum() / total.sum()

    return value


def depth_of(graph):
    depth = np.zeros(len(graph), int)
    for node in graph.topological:
        row = graph.operands[graph.indptr[node] : graph.indptr[node + 1]]
        depth[node] = depth[row].max() + 1 if len(row) else 0
    return depth


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6), nodes=st.sampled_from([8, 40]))
def test_every_rule_gives_a_valid_schedule(random_graph, seed, types, nodes):
    graph = random_graph(seed, nodes, types)
    for name in [*RULES, "beam:3"]:
        schedule = Heuristic(name).schedule(graph)
        schedule.validate(graph)
        assert len(schedule) >= lower_bound(graph)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6))
def test_ratios_are_those_of_brute_force(random_graph, seed, types):
    graph = random_graph(seed, 30, types)
    check_rule(graph, Heuristic("sufficient").schedule(graph), ratio_rule(graph, ancestors(graph)))
    check_rule(graph, Heuristic("sufficient-direct").schedule(graph), ratio_rule(graph, direct(graph)))


def test_more_than_64_types_are_no_special_case(random_graph):
    names = [f"t{index}" for index in range(130)]
    graph = random_graph(7, 400, 130, names)
    check_rule(graph, Heuristic("sufficient").schedule(graph), ratio_rule(graph, ancestors(graph)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6))
def test_agendas_take_the_smallest_average_depth(random_graph, seed, types):
    graph = random_graph(seed, 30, types)
    depth = depth_of(graph)
    over_all = {kind: depth[graph.types == kind].mean() for kind in set(graph.types.tolist())}
    check_rule(graph, Heuristic("agenda").schedule(graph), lambda _, __, kind: -over_all[kind])
    check_rule(
        graph,
        Heuristic("agenda-remaining").schedule(graph),
        lambda remaining, _, kind: -depth[remaining & (graph.types == kind)].mean(),
    )


def test_depth_batches_each_type_at_each_depth(random_graph):
    for seed in range(20):
        graph = random_graph(seed, 40)
        depth = depth_of(graph)
        schedule = Heuristic("depth").schedule(graph)
        assert len(schedule) == len(set(zip(depth.tolist(), graph.types.tolist(), strict=True)))
        assert all(len(set(depth[batch])) == 1 for batch in schedule.batches())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nothing_beats_the_exact_search(random_graph, seed):
    graph = random_graph(seed, 12, 3)
    best = minimum_batches(graph)
    assert all(len(Heuristic(name).schedule(graph)) >= best for name in RULES)
    assert len(Heuristic("beam:1000").schedule(graph)) == best


def test_schedules_are_the_same_every_time(random_graph):
    graph = random_graph(5, 60, 5)
    for name in RULES:
        first, second = Heuristic(name).schedule(graph), Heuristic(name).schedule(graph)
        assert first.order.tolist() == second.order.tolist()
        assert first.types.tolist() == second.types.tolist()


def test_an_empty_graph_needs_no_batches():
    empty = TypedGraph.checked([], [0], [], [])
    assert [len(Heuristic(name).schedule(empty)) for name in RULES] == [0] * len(RULES)


def test_a_beam_is_never_worse_than_greedy(random_graph):
    for seed in range(30):
        graph = random_graph(seed, 60, 5)
        assert len(Heuristic("beam:2").schedule(graph)) <= len(Heuristic("greedy").schedule(graph))


@pytest.mark.parametrize("name", ["beam:", "beam:0", "beam:ten", "deep"])
def test_bad_names_say_what_is_there(name):
    with pytest.raises(EdBatchError, match=r"positive integer|there are depth, agenda"):
        Heuristic(name)


@pytest.mark.parametrize("family", ["treenn", "mvrnn", "bilstm"])
def test_sufficient_reaches_the_bound_on_recorded_graphs(recorded, family):
    for number in range(3):
        graph = recorded(f"{family}-B64-G{number}")
        assert len(Heuristic("sufficient").schedule(graph)) == lower_bound(graph)


def test_searches_on_recorded_graphs(recorded):
    for number in range(3):
        graph = recorded(f"seq2seq-B64-G{number}")
        assert len(Heuristic("greedy").schedule(graph)) == lower_bound(graph)
    for name in ("lattice-B64-G0", "lattice-B64-G1", "lattice-B128-G0"):
        graph = recorded(name)
        assert len(Heuristic("beam:50").schedule(graph)) <= 1.10 * lower_bound(graph)
