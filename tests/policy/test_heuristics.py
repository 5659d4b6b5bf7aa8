from itertools import combinations, product

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
    for name in RULES:
        schedule = Heuristic(name).schedule(graph)
        schedule.validate(graph)
        assert len(schedule) >= lower_bound(graph)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6))
def test_ratios_are_those_of_brute_force(random_graph, seed, types):
    graph = random_graph(seed, 30, types)
    check_rule(graph, Heuristic("sufficient").schedule(graph), ratio_rule(graph, ancestors(graph)))


def work_ahead(graph):
    """int[n, T]: the most nodes of each type on a path that starts at a node."""
    ahead = np.zeros((len(graph), len(graph.names)), int)
    for node in graph.topological[::-1]:
        users = [user for user in range(len(graph)) if direct(graph)[user, node]]
        ahead[node] = ahead[users].max(axis=0, initial=0)
        ahead[node, graph.types[node]] += 1
    return ahead


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 6))
def test_critical_path_lowers_the_bound_and_takes_most_work_ahead(random_graph, seed, types):
    graph = random_graph(seed, 30, types)
    ahead, waits, remaining = work_ahead(graph), direct(graph), np.ones(len(graph), bool)
    repeats = ahead.max(axis=0) > 1
    schedule = Heuristic("critical-path").schedule(graph)
    for batch, kind in zip(schedule.batches(), schedule.types, strict=True):
        ready = remaining & ~(waits & remaining).any(axis=1)
        kinds = sorted(set(graph.types[ready].tolist()))
        bound = ahead[ready].max(axis=0).sum()
        keys = {}
        for other in kinds:
            mine = ready & (graph.types == other)
            left = remaining & ~mine
            lowers = not left.any() or ahead[left & ~(waits & left).any(axis=1)].max(axis=0).sum() < bound
            share = mine.sum() / (remaining & (graph.types == other)).sum()
            keys[other] = (lowers, ahead[mine][:, repeats].sum(axis=1).max(), share)
        if not any(share == 1 for *_, share in keys.values()):
            assert keys[kind] == max(keys.values())
        else:
            assert keys[kind][2] == 1 or len(kinds) == 1
        assert sorted(batch.tolist()) == np.flatnonzero(ready & (graph.types == kind)).tolist()
        remaining[batch] = False


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


def test_depth_batches_each_type_at_each_depth(random_graph):
    for seed in range(20):
        graph = random_graph(seed, 40)
        depth = depth_of(graph)
        schedule = Heuristic("depth").schedule(graph)
        assert len(schedule) == len(set(zip(depth.tolist(), graph.types.tolist(), strict=True)))
        assert all(len(set(depth[batch])) == 1 for batch in schedule.batches())


@pytest.mark.parametrize("nodes", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_all_small_graphs_of_two_types(nodes):
    """The rule is one batch above the fewest at most, and seldom."""
    pairs = list(combinations(range(nodes), 2))
    above = []
    for edges in product((False, True), repeat=len(pairs)):
        operands = [[u for (u, v), on in zip(pairs, edges, strict=True) if on and v == node] for node in range(nodes)]
        for types in product("ab", repeat=nodes - 1):
            graph = TypedGraph.from_lists(["a", *types], operands)
            best = minimum_batches(graph)
            above.append(len(Heuristic("critical-path").schedule(graph)) - best)
    assert max(above) <= 1
    assert sum(above) < 0.02 * len(above)


def test_an_empty_graph_needs_no_batches():
    empty = TypedGraph.checked([], [0], [], [])
    assert [len(Heuristic(name).schedule(empty)) for name in RULES] == [0] * len(RULES)


def test_bad_names_say_what_is_there():
    with pytest.raises(EdBatchError, match="no policy is named 'deep'; there are depth, agenda"):
        Heuristic("deep")


@pytest.mark.parametrize("family", ["treenn", "mvrnn", "bilstm"])
def test_sufficient_reaches_the_bound_on_recorded_graphs(recorded, family):
    for number in range(3):
        graph = recorded(f"{family}-B64-G{number}")
        assert len(Heuristic("sufficient").schedule(graph)) == lower_bound(graph)
