"""Changes of a table, coarse to fine: what helps in many states at once is less likely to fit one mini-batch alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from edbatch.policy.encodings import CRITICAL
from edbatch.policy.state_table import StateTable

LEVELS = ("types", "pairs", "one")  # coarse to fine


Change = tuple[NDArray[np.intp], NDArray[np.int32]]  # states, and the position in each of the type to choose there


def changes(table: StateTable, encoding: int, level: str, met: Mapping[int, int]) -> list[Change]:
    """What to try in the states that are alike at a level, those first that were met most often.

    Args:
        level: "types": states with the same types ready, and the same mark, are alike; "pairs": of those the ones where
            more is ready of one type than of another; "one": none are.
        met: how often each state decided; groups of states that never did are left out.
    """
    groups: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)  # of a group and a type: states and positions
    for number in range(int(table.size[0])):
        letters = table.letters[table.start[number] : table.start[number + 1]].tolist()
        mark: Hashable = int(table.mark[number])
        if encoding >= CRITICAL:  # the types that are marked, whatever their places
            mark = frozenset(letter for at, letter in enumerate(letters) if table.mark[number] >> at & 1)
        alike = number if level == "one" else (frozenset(letters), mark)
        for types in combinations(letters, 2) if level == "pairs" else [letters]:
            for letter in types:
                groups[alike, types if level == "pairs" else None, letter].append((number, letters.index(letter)))
    weights = {group: sum(met.get(number, 0) for number, _ in members) for group, members in groups.items()}
    found = []
    for group in sorted(filter(weights.__getitem__, groups), key=lambda group: -weights[group]):
        states, positions = zip(*groups[group], strict=True)
        found.append((np.array(states), np.array(positions, np.int32)))
    return found
