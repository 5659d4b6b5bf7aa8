"""The FSM's scheduling loop, compiled: Algorithm 1 with a table of states."""

import numpy as np
from numba import njit

from edbatch.policy.encodings import encode
from edbatch.policy.frontier import Graph, ready_types, run_batch
from edbatch.policy.ratio import best_ratio, new_blockers, unblock
from edbatch.policy.state_table import find


@njit(cache=True)
def run(types, user_indptr, users, frontier, record, table, encoding, to_policy):
    """Schedule until all is done or a state is unseen; returns whether all is done.

    `to_policy` (int32[T]) translates the graph's types to the policy's letters, -1 for a type it does not know.
    """
    graph = Graph(types, user_indptr, users)
    kinds = np.empty(len(to_policy), np.int32)
    letters = np.empty(len(to_policy), np.int32)
    while record.offsets[record.length[0]] < len(types):
        count = ready_types(frontier, kinds)
        choice = decide(frontier, record, table, encoding, to_policy, kinds, letters, count, len(types))
        if choice < 0:
            return False
        run_batch(graph, frontier, record, kinds[choice])
    return True


@njit(cache=True)
def run_with_ratio(
    types, indptr, operands, user_indptr, users, order, frontier, record, table, encoding, to_policy
):
    """Finish a schedule, deciding unseen states by the path ratio.

    Returns how many there were, and whether one held a type that the policy does not know.
    """
    graph = Graph(types, user_indptr, users)
    blockers = new_blockers(types, indptr, operands, order, frontier.missing, len(to_policy))
    kinds = np.empty(len(to_policy), np.int32)
    letters = np.empty(len(to_policy), np.int32)
    unseen, unknown = 0, False
    while record.offsets[record.length[0]] < len(types):
        count = ready_types(frontier, kinds)
        choice = decide(frontier, record, table, encoding, to_policy, kinds, letters, count, len(types))
        if choice >= 0:
            kind = kinds[choice]
        else:
            kind = best_ratio(frontier, blockers, kinds, count)
            unseen += 1
            for other in kinds[:count]:
                unknown |= to_policy[other] < 0
        unblock(graph, frontier, blockers, kind)
        run_batch(graph, frontier, record, kind)
    return unseen, unknown


@njit(cache=True)
def decide(frontier, record, table, encoding, to_policy, kinds, letters, count, nodes):
    """The position in `kinds` of the type that the table chooses, or -1 in an unseen state."""
    if count == 1:
        return 0  # nothing to decide
    for index in range(count):
        letters[index] = to_policy[kinds[index]]
        if letters[index] < 0:
            return -1
    done = record.offsets[record.length[0]]
    phase = encode(encoding, frontier.end - frontier.begin, letters, kinds, count, done, nodes)
    state, _ = find(table, letters, count, phase)
    return table.choice[state] if state >= 0 else -1
