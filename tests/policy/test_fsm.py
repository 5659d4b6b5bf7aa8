import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchWarning
from edbatch.policy import FSM, Heuristic, TypedGraph, learn, lower_bound
from edbatch.policy.encodings import ENCODINGS
from edbatch.policy.state_table import insert, new_table


def machine(rows, types=("I", "O"), encoding="base"):
    """An FSM from (frontier letters, choice) rows."""
    table = new_table(8, 64)
    for letters, choice in rows:
        table.choice[insert(table, np.int32(letters), len(letters), 0)] = choice
    return FSM(encoding, types, table)


TREE = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])


def test_the_table_decides():
    assert len(machine([([0, 1], 0)]).schedule(TREE)) == 3
    assert len(machine([([0, 1], 1)]).schedule(TREE)) == 4


def test_an_unseen_state_falls_back_to_the_rule_and_is_counted():
    fsm = machine([])
    assert len(fsm.schedule(TREE)) == 3
    assert fsm.fallbacks == 1  # I and O stand on the frontier once
    fsm.schedule(TREE)
    assert fsm.fallbacks == 2


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_an_empty_table_over_ahead_is_the_rule_critical_path(random_graph, seed):
    graph = random_graph(seed, 40, 4)
    schedule = machine([], ("A", "B", "C", "D"), "ahead").schedule(graph)
    assert schedule.types.tolist() == Heuristic("critical-path").schedule(graph).types.tolist()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), encoding=st.sampled_from(list(ENCODINGS)))
def test_graphs_it_was_not_trained_on_get_valid_schedules(random_graph, seed, encoding):
    fsm = learn([random_graph(1, 60, 4)], encoding=encoding, episodes=0, progress=False)
    graph = random_graph(seed, 60, 4)
    schedule = fsm.schedule(graph)
    schedule.validate(graph)
    assert len(schedule) >= lower_bound(graph)
    again = fsm.schedule(graph)
    assert again.order.tolist() == schedule.order.tolist()


def test_unknown_types_warn_once_and_fall_back():
    graph = TypedGraph.from_lists(["I", "N", "I", "N"], [[], [0], [0], [2]])
    fsm = machine([([0, 1], 0)])
    with pytest.warns(EdBatchWarning, match="not trained with the types N, in these shapes; where they are ready"):
        assert len(fsm.schedule(graph)) == 3
    assert fsm.fallbacks == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fsm.schedule(graph)


def test_unknown_types_are_named_as_a_person_calls_them():
    names = ["my.module.make.Net.step (eager x)([32], [8])", "my.module.make.Net.step (h, c)([32], [8], [8]) #2"]
    names += [f"{op}([{size}])" for op in ("tanh", "exp", "sin", "cos", "erf") for size in (3, 4)]
    graph = TypedGraph.from_lists([*names, *names[::-1]], [[] for _ in range(2 * len(names))])
    with pytest.warns(
        EdBatchWarning, match="with the types Net.step, tanh, exp, sin, cos and 1 more, in these shapes; where they are"
    ):
        machine([([0, 1], 0)]).schedule(graph)


def test_observing_leaves_unknown_states_out_and_the_table_alone(random_graph):
    fsm = machine([([0, 1], 0)], ("A", "B"))
    fsm.observe([random_graph(seed, 40, 4) for seed in range(5)])
    assert fsm.states.size[0] == 1
