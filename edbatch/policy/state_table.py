"""The states of an FSM in a compiled hash table: state -> row, values per (state, type)."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled


class StateTable(NamedTuple):
    """States by number; state s is (mark[s], letters[start[s]:start[s + 1]]).

    `q` runs parallel to `letters`: one value for each type the state may choose.
    """

    slots: np.ndarray  # int32[power of two]: open addressing with linear probing, -1 where empty
    start: np.ndarray  # int32[capacity + 1]
    mark: np.ndarray  # int32[capacity]
    choice: np.ndarray  # int32[capacity]: position of the chosen type in the state's letters
    letters: np.ndarray  # int32[letter capacity]
    q: np.ndarray  # float64[letter capacity]
    size: np.ndarray  # int64[1]: states in use

    def copied(self, room: int = 1) -> "StateTable":
        """A copy with so many times the room, or just enough (0)."""
        size = int(self.size[0])
        states, letters = max(room * len(self.mark), size), max(room * len(self.letters), int(self.start[size]))
        return copy_states(self, new_table(states, letters))


def new_table(states: int, letters: int) -> StateTable:
    """An empty table with room for so many states and letters."""
    slots = 1 << (2 * max(states, 4) - 1).bit_length()
    start, mark, choice = (np.zeros(size, np.int32) for size in (states + 1, states, states))
    rows, q, size = np.zeros(letters, np.int32), np.zeros(letters), np.zeros(1, np.int64)
    return StateTable(np.full(slots, -1, np.int32), start, mark, choice, rows, q, size)


@compiled(small=True)
def copy_states(table: StateTable, into: StateTable) -> StateTable:
    """Add the states of `table` to `into`, an empty table with room for them."""
    for state in range(table.size[0]):
        first, last = table.start[state], table.start[state + 1]
        insert(into, table.letters[first:last], last - first, table.mark[state])
        into.choice[state] = table.choice[state]
        into.q[first:last] = table.q[first:last]
    return into


@compiled(small=True)
def find(table: StateTable, letters: np.ndarray, count: int, mark: int) -> tuple[int, np.uint64]:
    """(state or -1, slot): keys are compared letter by letter, so equal hashes do no harm."""
    code = np.uint64(mark + 1)
    for letter in letters[:count]:
        code = (code ^ np.uint64(letter + 1)) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    mask = np.uint64(len(table.slots) - 1)
    slot = code & mask
    while table.slots[slot] >= 0:
        state = table.slots[slot]
        first = table.start[state]
        index = 0 if table.mark[state] == mark and table.start[state + 1] - first == count else count + 1
        while index < count and table.letters[first + index] == letters[index]:
            index += 1
        if index == count:
            return int(state), slot
        slot = (slot + np.uint64(1)) & mask
    return -1, slot


@compiled(small=True)
def insert(table: StateTable, letters: np.ndarray, count: int, mark: int) -> int:
    """The number of the state, added if it is new; -1 when it is new and the table is full."""
    state, slot = find(table, letters, count, mark)
    if state >= 0:
        return state
    state = int(table.size[0])
    first = table.start[state]
    if state == len(table.mark) or first + count > len(table.letters):
        return -1
    table.slots[slot] = state
    table.mark[state] = mark
    table.letters[first : first + count] = letters[:count]
    table.start[state + 1] = first + count
    table.size[0] = state + 1
    return state
