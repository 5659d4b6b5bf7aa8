"""Changes of a table, coarse to fine: what helps in many states at once is less likely to fit one mini-batch alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edbatch.policy.encodings import CRITICAL
from edbatch.policy.state_table import StateTable

LEVELS = ("types", "pairs", "one")  # coarse to fine


class Change(NamedTuple):
    """To choose one type in several states: in `states[i]` it is at `positions[i]`."""

    states: NDArray[np.intp]
    positions: NDArray[np.int32]


def changes(table: StateTable, encoding: int, level: str, met: Mapping[int, int]) -> list[Change]:
    """What to try in the states that are alike at a level, those first that were met most often.

    Args:
        table: its states are grouped; what it chooses does not matter.
        encoding: a value of ENCODINGS.
        level: "types": states with the same types ready, and the same mark, are alike; "pairs": of those the ones where
            more is ready of one type than of another; "one": none are.
        met: how often each state decided; groups of states that never did are left out.
    """
    groups: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)  # of a group and a type: states and positions
    for number in range(int(table.size[0])):
        letters = table.letters[table.start[number] : table.start[number + 1]].tolist()
        for key, types in _groups(level, number, letters, _mark(table, encoding, number, letters)):
            for letter in types:
                groups[key, letter].append((number, letters.index(letter)))
    weights = {key: sum(met.get(number, 0) for number, _ in members) for key, members in groups.items()}
    found = []
    for key in sorted(filter(weights.__getitem__, groups), key=lambda key: -weights[key]):
        states, positions = zip(*groups[key], strict=True)
        found.append(Change(np.array(states), np.array(positions, np.int32)))
    return found


def _groups(level: str, number: int, letters: list[int], mark: Hashable) -> Iterator[tuple[Hashable, tuple[int, ...]]]:
    """Which groups a state is in, and the types to try in each."""
    if level == "one":
        yield number, tuple(letters)
        return
    alike = frozenset(letters), mark
    if level == "types":
        yield alike, tuple(letters)
    else:
        for pair in combinations(letters, 2):
            yield (*alike, pair), pair


def _mark(table: StateTable, encoding: int, number: int, letters: list[int]) -> Hashable:
    """Of `critical` and `ahead` the types that are marked, whatever their places; else the mark."""
    mark = int(table.mark[number])
    if encoding < CRITICAL:
        return mark
    return frozenset(letter for at, letter in enumerate(letters) if mark >> at & 1)
