import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edbatch.policy.state_table import find, insert, new_table

STATES = st.lists(st.tuples(st.lists(st.integers(0, 70), min_size=1, max_size=6), st.integers(0, 3)), max_size=60)


@given(STATES)
def test_it_behaves_like_a_dictionary(states):
    table, numbers = new_table(2, 4), {}
    for letters, mark in states:
        key = np.int32(letters)
        while (number := insert(table, key, len(key), mark)) < 0:
            table = table.copied(room=2)
        assert numbers.setdefault((tuple(letters), mark), number) == number
    assert table.size[0] == len(numbers)
    for (letters, mark), number in numbers.items():
        assert find(table, np.int32(letters), len(letters), mark)[0] == number
    assert find(table, np.int32([99]), 1, 0)[0] == -1


def test_marks_tell_states_apart():
    """However many there are: some share a slot of the table."""
    table, letters = new_table(64, 128), np.int32([1, 2])
    assert [insert(table, letters, 2, mark) for mark in range(64)] == list(range(64))
    assert [find(table, letters, 2, mark)[0] for mark in range(64)] == list(range(64))


def test_a_copy_keeps_values():
    table = new_table(4, 16)
    for number, letters in enumerate(([1, 2], [2, 1], [3])):
        insert(table, np.int32(letters), len(letters), 0)
        table.choice[number] = len(letters) - 1
        table.q[table.start[number]] = number
    copy = table.copied(room=0)
    assert copy.size[0] == 3
    state = find(copy, np.int32([2, 1]), 2, 0)[0]
    assert copy.choice[state] == 1
    assert copy.q[copy.start[state]] == 1
    assert insert(copy, np.int32([4]), 1, 0) == -1
