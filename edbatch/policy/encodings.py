"""State encodings E(G): what an FSM sees of the frontier (section 2.3, "State Encoding").

A state is a sequence of the types on the frontier and a number, its mark:

- `base`: the types in ascending order; their set.
- `max`: the most frequent type first, then the others in ascending order.
- `sort`: the types by falling frequency. The paper's best, and the default.
- `phase`: `sort`, and how many tenths of the graph's nodes have run (appendix A.4).
- `critical`: `sort`, and for each type whether its batch would bring down the lower bound of what remains.
- `ahead`: the types by falling work ahead (`critical.work_ahead`), marked in the same way. A type all of whose
  remaining nodes are ready runs at once, in no state: the rule `critical-path` is a machine over these states.

Equals are ordered by type, so that a state is a function of the frontier.
"""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, is_critical, work_ahead
from edbatch.policy.frontier import Frontier

ENCODINGS = {"base": 0, "max": 1, "sort": 2, "phase": 3, "critical": 4, "ahead": 5}
BASE, MAX, SORT, PHASE, CRITICAL, AHEAD = ENCODINGS.values()
PHASES = 10
MARKED_TYPES = 30  # marks are of the first of the types; the mark is an int32


@compiled(small=True)
def encode(
    encoding: int, frontier: Frontier, critical: Critical, letters: np.ndarray, kinds: np.ndarray, count: int,
    done: float,
) -> int:  # fmt: skip
    """Order kinds[:count], ready types by the graph's numbers, and letters[:count], the same by the policy's.

    Returns the state's mark; `done` is the share of the nodes that have run.
    """
    amount = np.zeros(len(frontier.begin))  # what comes first
    for kind in kinds[:count]:
        if encoding == AHEAD:
            amount[kind] = work_ahead(critical, frontier, kind)
        elif encoding != BASE:
            amount[kind] = frontier.end[kind] - frontier.begin[kind]
    if encoding == MAX:
        most = 0
        for index in range(1, count):
            if (amount[kinds[index]], -letters[index]) > (amount[kinds[most]], -letters[most]):
                most = index
        amount[:] = 0
        amount[kinds[most]] = 1
    for last in range(1, count):  # insertion sort: a frontier rarely holds more than ten types
        letter, kind = letters[last], kinds[last]
        place = last
        while place > 0 and (amount[kinds[place - 1]], -letters[place - 1]) < (amount[kind], -letter):
            letters[place], kinds[place] = letters[place - 1], kinds[place - 1]
            place -= 1
        letters[place], kinds[place] = letter, kind
    mark = 0
    if encoding == PHASE:
        mark = int(done * PHASES)
    elif encoding >= CRITICAL:
        for index in range(min(count, MARKED_TYPES)):
            mark |= int(is_critical(critical, frontier, kinds, count, kinds[index])) << index
    return mark


def describe(encoding: str, names: list[str], mark: int) -> str:
    """A state as text: `I O`, `I O @3/10` in a phase, `I O!` where the second type is marked."""
    if ENCODINGS[encoding] >= CRITICAL:
        return " ".join(name + "!" * (mark >> index & 1) for index, name in enumerate(names))
    return " ".join(names) + (f" @{mark}/{PHASES}" if encoding == "phase" else "")
