import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.policy import FSM, Heuristic, TypedGraph, learn, lower_bound
from edbatch.policy.encodings import PHASE, SORT
from edbatch.policy.heuristics import RUN_TIME_RULES
from edbatch.policy.loops import learn_from
from edbatch.policy.state_table import insert, new_table
from edbatch.policy.trainer import Trainer


def joined(first, second):
    """The second graph starts where the first ends; types are matched by name."""
    types, operands = [], []
    for graph in (first, second):
        base = len(types)
        for node in range(len(graph)):
            row = graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist()
            operands.append([base + operand for operand in row] or ([base - 1] if base else []))
            types.append(graph.names[graph.types[node]])
    return TypedGraph.from_lists(types, operands)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), encoding=st.sampled_from(["base", "max", "sort", "phase", "critical"]))
def test_learned_is_never_worse_than_the_best_heuristic(random_graph, seed, encoding):
    graphs = [random_graph(seed + number, 40, 4) for number in range(3)]
    policy = learn(graphs, encoding=encoding, episodes=60, progress=False)
    learned = [len(policy.schedule(graph)) for graph in graphs]
    for graph in graphs:
        policy.schedule(graph).validate(graph)
    for name in RUN_TIME_RULES:
        assert sum(learned) <= sum(len(Heuristic(name).schedule(graph)) for graph in graphs)
    assert policy.training.batches == learned
    assert policy.training.bounds == [lower_bound(graph) for graph in graphs]
    if isinstance(policy, FSM):
        assert policy.fallbacks == 0  # every state on the way was met in training


def test_learning_is_deterministic(random_graph):
    graphs = [random_graph(seed, 60, 5) for seed in (3, 4)]
    first, second = (learn(graphs, episodes=200, seed=7, progress=False) for _ in range(2))
    assert first.training.batches == second.training.batches
    assert first.training.episodes == second.training.episodes
    if isinstance(first, FSM):
        assert first.table() == second.table()
        assert first.transitions == second.transitions


def test_the_tree_of_figure_1_needs_no_episode(tree):
    graph = tree(6)
    policy = learn([graph], encoding="base", progress=False)
    assert policy.training.batches == policy.training.bounds
    assert policy.training.episodes == 0
    assert len(policy.schedule(tree(9))) == lower_bound(tree(9))


def test_the_counter_example_of_appendix_a4_needs_phases(tree):
    graph = joined(tree(6), tree(6, inner="O", output="I"))
    base = learn([graph], encoding="base", progress=False)
    phase = learn([graph], encoding="phase", progress=False)
    assert isinstance(phase, FSM)
    assert len(phase.schedule(graph)) == lower_bound(graph)
    assert isinstance(base, Heuristic) or len(base.schedule(graph)) > lower_bound(graph)


def test_returns_bootstrap_from_the_state_n_steps_on():
    # a chain of decisions x|y: the two-step return of the first ends in Q of the third
    graph = TypedGraph.from_lists(["x", "y"] * 4, [[], [], [0], [1], [2], [3], [4], [5]])
    trainer, table = Trainer([graph], PHASE, 0), new_table(64, 256)
    (arena,) = trainer.arenas
    for done in range(7):
        table.choice[insert(table, np.int32([0, 1]), 2, done * 10 // 8)] = done % 2
    _, decisions, _ = trainer.run(arena, table, alpha=0.5)
    states, positions, rewards = (column[:decisions].copy() for column in arena.trajectory)
    assert len(set(states.tolist())) == decisions  # every phase is a state of its own
    third = slice(table.start[states[2]], table.start[states[2] + 1])
    table.q[third] = -5.0
    entry = table.start[states[0]] + positions[0]
    learn_from(arena.trajectory, table, decisions, 1.0, 0.5, 2)
    # learned last to first, so the third state holds its own new value by then
    assert table.q[entry] == pytest.approx(
        rewards[0] + 0.5 * rewards[1] + 0.25 * table.q[third][table.q[third] != 0].max()
    )


def test_the_reward_is_equation_1(tree):
    trainer = Trainer([tree(3)], SORT, 0)
    _, decisions, _ = trainer.run(trainer.arenas[0], new_table(64, 512), alpha=1.0)
    # the rule decides in new states; the path ratio of its choices is 1 on a tree: -1 + 1 * 1 for every batch
    assert trainer.arenas[0].trajectory.rewards[:decisions] == pytest.approx(np.zeros(decisions))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"encoding": "deep"}, "no state encoding is named 'deep'; there are base, max, sort"),
        ({"episodes": -1}, "learn: episodes=-1; expected an integer of at least 0"),
        ({"epsilon": 2.0}, "epsilon <= 1"),
        ({"rate": 0.0}, "0 < rate"),
        ({"steps": 0}, "learn: steps=0; expected an integer of at least 1"),
        ({"seed": -1}, "learn: seed=-1; expected an integer of at least 0"),
        ({"alpha": float("nan")}, r"learn: alpha=nan; expected a number in \[0, inf\)"),
        ({"alpha": float("inf")}, r"learn: alpha=inf; expected a number in \[0, inf\)"),
        ({"alpha": "x"}, "learn: alpha='x'; expected a number"),
        ({"steps": 2.5}, "learn: steps=2.5; expected an integer"),
        ({"steps": 2**63}, "learn: steps=9223372036854775808; expected an integer of at most"),
        ({"episodes": 10.5}, "learn: episodes=10.5; expected an integer"),
        ({"episodes": None}, "learn: episodes=None; expected an integer"),
        ({"seed": True}, "learn: seed=True; expected an integer"),
        ({"gamma": 1.0}, "there is no 'gamma'; there are alpha, epsilon, rate, discount, steps"),
    ],
)
def test_bad_arguments_are_named(tree, wrong, message):
    with pytest.raises(EdBatchError, match=message):
        learn([tree(2)], **wrong)


def test_no_graphs_and_cycles_are_refused():
    with pytest.raises(EdBatchError, match="at least one graph"):
        learn([])
    loop = TypedGraph(np.int32([0]), np.int64([0, 1]), np.int32([0]), ("a",))
    with pytest.raises(EdBatchError, match="cycle through node 0 -> 0"):
        learn([loop])


@pytest.mark.parametrize("family", ["treenn", "mvrnn", "bilstm", "seq2seq"])
def test_regular_recorded_graphs_are_learned_in_general(recorded, family):
    policy = learn([recorded(f"{family}-B64-G0")], progress=False)
    for number in (1, 2):
        graph = recorded(f"{family}-B64-G{number}")
        assert len(policy.schedule(graph)) <= 1.02 * lower_bound(graph)


def test_what_is_learned_of_lattices_is_no_worse_than_the_rule_elsewhere(recorded):
    graphs = [recorded("lattice-B64-G0"), recorded("lattice-B64-G1")]
    policy = learn(graphs, progress=False)
    assert sum(policy.training.batches) <= sum(policy.training.heuristic_batches)
    critical = learn(graphs, encoding="critical", progress=False)
    for name in ("lattice-B128-G0", "lattice-B128-G1", "lattice-B128-G2"):
        graph = recorded(name)
        assert len(critical.schedule(graph)) <= 1.25 * lower_bound(graph)
        assert len(policy.schedule(graph)) <= 1.2 * lower_bound(graph)
