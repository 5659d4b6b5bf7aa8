"""State encodings E(G): what an FSM sees of the frontier (section 2.3, "State Encoding").

A state is a sequence of the types on the frontier plus one number, so that every encoding shares one table:

- `base`: the types in ascending order; their set.
- `max`: the most frequent type first, then the others in ascending order.
- `sort`: the types by falling frequency. The paper's best, and the default.
- `phase`: `sort`, and how many tenths of the graph's nodes have run (appendix A.4).

Equal frequencies are ordered by type, so that a state is a function of the frontier.
"""

from numba import njit

ENCODINGS = {"base": 0, "max": 1, "sort": 2, "phase": 3}
PHASES = 10


@njit(cache=True)
def encode(encoding, ready, letters, kinds, count, done, nodes):
    """Order kinds[:count] and letters[:count] as the encoding asks, and return the state's number.

    Args:
        encoding: one of the values of ENCODINGS.
        ready: int32[T], how many nodes of each of the graph's types are on the frontier.
        letters: int32[>= count], for each type its number in the policy; the state is read from here.
        kinds: int32[>= count], the graph's own numbers of the same types.
        count: the number of types on the frontier.
        done, nodes: how many nodes have run, of how many.
    """
    for last in range(1, count):  # insertion sort: a frontier rarely holds more than ten types
        letter, kind = letters[last], kinds[last]
        place = last
        while place > 0:
            before = letters[place - 1] < letter
            if encoding >= 2 and ready[kinds[place - 1]] != ready[kind]:
                before = ready[kinds[place - 1]] > ready[kind]
            if before:
                break
            letters[place], kinds[place] = letters[place - 1], kinds[place - 1]
            place -= 1
        letters[place], kinds[place] = letter, kind
    if encoding == 1:
        most = 0
        for index in range(1, count):
            if ready[kinds[index]] > ready[kinds[most]]:
                most = index
        letter, kind = letters[most], kinds[most]
        for index in range(most, 0, -1):
            letters[index], kinds[index] = letters[index - 1], kinds[index - 1]
        letters[0], kinds[0] = letter, kind
    return done * PHASES // nodes if encoding == 3 else 0
