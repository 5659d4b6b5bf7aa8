import numpy as np

from edbatch.policy.encodings import SORT
from edbatch.policy.state_table import insert, new_table
from edbatch.policy.trainer import changes


def table_of(*states):
    table = new_table(16, 64)
    for *letters, mark in states:
        insert(table, np.int32(letters), len(letters), mark)
    return table


def listed(found):
    return [(states.tolist(), positions.tolist()) for states, positions in found]


def test_states_of_the_same_types_change_together():
    table = table_of((0, 1, 0), (1, 0, 0), (0, 2, 0))
    found = listed(changes(table, SORT, "types", {0: 1, 1: 1, 2: 1}))
    assert found == [([0, 1], [0, 1]), ([0, 1], [1, 0]), ([2], [0]), ([2], [1])]


def test_those_met_most_often_come_first_and_those_never_met_not_at_all():
    table = table_of((0, 1, 0), (0, 2, 0), (1, 2, 0))
    found = listed(changes(table, SORT, "one", {1: 3, 2: 5}))
    assert found == [([2], [0]), ([2], [1]), ([1], [0]), ([1], [1])]


def test_pairs_are_told_apart_by_which_is_more():
    table = table_of((0, 1, 2, 0), (0, 2, 1, 0), (1, 0, 2, 0))
    found = listed(changes(table, SORT, "pairs", {0: 1, 1: 1, 2: 1}))
    first = [row for row in found if row[0] == [0, 1]]  # where more is ready of 0 than of 1
    assert first == [([0, 1], [0, 0]), ([0, 1], [1, 2])]
    assert ([0, 1, 2], [0, 0, 1]) in found  # of 0 than of 2: everywhere
    assert all(len(states) < 3 or positions != [0, 0, 0] for states, positions in found)
