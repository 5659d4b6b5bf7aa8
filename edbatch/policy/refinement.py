"""Changes of a table, coarse to fine: what helps in many states at once is less likely to fit one mini-batch alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edbatch.policy.encodings import CRITICAL
from edbatch.policy.state_table import StateTable


class Seen(NamedTuple):
    """A state, taken apart.

    Attributes:
        letters: its types, in the encoding's order.
        mark: of `critical` and `ahead` the types that are marked, whatever their places; else the mark.
    """

    letters: tuple[int, ...]
    mark: Hashable


class Change(NamedTuple):
    """To choose one type in several states: in `states[i]` it is at `positions[i]`."""

    states: NDArray[np.intp]
    positions: NDArray[np.int32]


Groups = Iterator[tuple[Hashable, tuple[int, ...]]]  # which a state is in, and the types to try in each
Level = Callable[[Seen], Groups]


def of_types(state: Seen) -> Groups:
    """States with the same types ready, and the same mark."""
    yield (frozenset(state.letters), state.mark), state.letters


def of_pairs(state: Seen) -> Groups:
    """Of those the ones where more is ready of one type than of another: which of the two."""
    types = frozenset(state.letters)
    for pair in combinations(state.letters, 2):
        yield (types, state.mark, pair), pair


def of_one(state: Seen) -> Groups:
    """Each state for itself."""
    yield state, state.letters


LEVELS = (of_types, of_pairs, of_one)  # coarse to fine


def changes(table: StateTable, encoding: int, level: Level, met: Mapping[int, int]) -> list[Change]:
    """What to try in the states that are alike at a level, those first that were met most often.

    Args:
        table: its states are grouped; what it chooses does not matter.
        encoding: a value of ENCODINGS.
        level: says which states are alike.
        met: how often each state decided; groups of states that never did are left out.
    """
    groups: dict[Hashable, list[tuple[int, Seen]]] = defaultdict(list)
    options: dict[Hashable, tuple[int, ...]] = {}
    for number in range(int(table.size[0])):
        state = _seen(table, encoding, number)
        for key, known in level(state):
            groups[key].append((number, state))
            options.setdefault(key, known)
    found = []
    for key, members in groups.items():
        weight = sum(met.get(number, 0) for number, _ in members)
        states = np.array([number for number, _ in members])
        for letter in options[key] if weight else ():
            at = np.array([state.letters.index(letter) for _, state in members], np.int32)
            found.append((weight, Change(states, at)))
    return [change for _, change in sorted(found, key=lambda item: -item[0])]


def _seen(table: StateTable, encoding: int, number: int) -> Seen:
    letters = tuple(table.letters[table.start[number] : table.start[number + 1]].tolist())
    mark = int(table.mark[number])
    if encoding >= CRITICAL:
        return Seen(letters, frozenset(letter for at, letter in enumerate(letters) if mark >> at & 1))
    return Seen(letters, mark)
