"""State encodings E(G): what an FSM sees of the frontier (section 2.3, "State Encoding").

A state is a sequence of the types on the frontier and a number, its mark, so that every encoding shares one
kind of table:

- `base`: the types in ascending order; their set.
- `max`: the most frequent type first, then the others in ascending order.
- `sort`: the types by falling frequency. The paper's best, and the default.
- `phase`: `sort`, and how many tenths of the graph's nodes have run (appendix A.4).
- `critical`: `sort`, and for each type whether its batch would bring down the lower bound of what remains.
  Not in the paper: fewer batches on irregular graphs, for O(types * edges) more work per schedule.

Equal frequencies are ordered by type, so that a state is a function of the frontier.
"""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import is_critical
from edbatch.policy.frontier import Frontier

ENCODINGS = {"base": 0, "max": 1, "sort": 2, "phase": 3, "critical": 4}
BASE, MAX, SORT, PHASE, CRITICAL = ENCODINGS.values()
PHASES = 10
MARKED_TYPES = 30  # `critical` marks the first of the types; the mark is an int32


@compiled(small=True)
def encode(
    encoding: int,
    frontier: Frontier,
    reach: np.ndarray,
    letters: np.ndarray,
    kinds: np.ndarray,
    count: int,
    done: float,
) -> int:
    """Order kinds[:count] and letters[:count] as the encoding asks, and return the state's mark.

    Args:
        encoding: one of the values of ENCODINGS.
        frontier: the frontier; only how many nodes of each type are ready matters.
        reach: int32[T, T], see `critical.Critical`; used by the encoding of that name only.
        letters: int32[>= count], for each type its number in the policy; the state is read from here.
        kinds: int32[>= count], the graph's own numbers of the same types.
        count: the number of types on the frontier.
        done: the share of the nodes that have run.
    """
    begin, end = frontier.begin, frontier.end
    for last in range(1, count):  # insertion sort: a frontier rarely holds more than ten types
        letter, kind = letters[last], kinds[last]
        ready = end[kind] - begin[kind]
        place = last
        while place > 0:
            in_order = letters[place - 1] < letter
            other = kinds[place - 1]
            if encoding >= SORT and end[other] - begin[other] != ready:
                in_order = end[other] - begin[other] > ready
            if in_order:
                break
            letters[place], kinds[place] = letters[place - 1], kinds[place - 1]
            place -= 1
        letters[place], kinds[place] = letter, kind
    mark = 0
    if encoding == MAX:
        most = 0
        for index in range(1, count):
            kind, other = kinds[index], kinds[most]
            if end[kind] - begin[kind] > end[other] - begin[other]:
                most = index
        letter, kind = letters[most], kinds[most]
        for index in range(most, 0, -1):
            letters[index], kinds[index] = letters[index - 1], kinds[index - 1]
        letters[0], kinds[0] = letter, kind
    elif encoding == PHASE:
        mark = int(done * PHASES)
    elif encoding == CRITICAL:
        for index in range(min(count, MARKED_TYPES)):
            mark |= int(is_critical(reach, kinds, count, kinds[index])) << index
    return mark


def describe(encoding: str, names: list[str], mark: int) -> str:
    """A state as text.

    Example:
        >>> describe("sort", ["I", "O"], 0), describe("phase", ["I", "O"], 3)
        ('I O', 'I O @3/10')
        >>> describe("critical", ["I", "O"], 0b10)
        'I O!'
    """
    if encoding == "critical":
        return " ".join(name + "!" * (mark >> index & 1) for index, name in enumerate(names))
    return " ".join(names) + (f" @{mark}/{PHASES}" if encoding == "phase" else "")
