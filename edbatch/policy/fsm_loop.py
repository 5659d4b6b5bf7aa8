"""The FSM's scheduling loop, compiled: Algorithm 1 with a table of states."""

import numpy as np
from numba import njit

from edbatch.policy.critical import Critical, run_critical_batch
from edbatch.policy.encodings import CRITICAL, encode
from edbatch.policy.frontier import Frontier, Graph, Record, ready_types, run_batch
from edbatch.policy.ratio import best_ratio, new_blockers, unblock
from edbatch.policy.state_table import StateTable, find


@njit(cache=True)
def run(
    types: np.ndarray,
    user_indptr: np.ndarray,
    users: np.ndarray,
    frontier: Frontier,
    record: Record,
    critical: Critical,
    table: StateTable,
    encoding: int,
    to_policy: np.ndarray,
) -> bool:
    """Schedule until all is done or a state is unseen; returns whether all is done.

    `to_policy` (int32[T]) translates the graph's types to the policy's letters; -1 is an unknown type.
    """
    graph = Graph(types, user_indptr, users)
    kinds, letters = np.empty(len(to_policy), np.int32), np.empty(len(to_policy), np.int32)
    while record.offsets[record.length[0]] < len(types):
        count = ready_types(frontier, kinds)
        choice = decide(frontier, record, critical, table, encoding, to_policy, kinds, letters, count)
        if choice < 0:
            return False
        if encoding == CRITICAL:
            run_critical_batch(graph, frontier, record, critical, kinds[choice])
        else:
            run_batch(graph, frontier, record, kinds[choice])
    return True


@njit(cache=True)
def run_with_ratio(
    types: np.ndarray,
    indptr: np.ndarray,
    operands: np.ndarray,
    user_indptr: np.ndarray,
    users: np.ndarray,
    order: np.ndarray,
    frontier: Frontier,
    record: Record,
    critical: Critical,
    table: StateTable,
    encoding: int,
    to_policy: np.ndarray,
) -> tuple[int, bool]:
    """Finish a schedule, deciding unseen states by the path ratio.

    Returns how many there were, and whether one held a type that the policy does not know.
    """
    graph = Graph(types, user_indptr, users)
    blockers = new_blockers(types, indptr, operands, order, frontier.missing, len(to_policy))
    kinds, letters = np.empty(len(to_policy), np.int32), np.empty(len(to_policy), np.int32)
    unseen, unknown = 0, False
    while record.offsets[record.length[0]] < len(types):
        count = ready_types(frontier, kinds)
        choice = decide(frontier, record, critical, table, encoding, to_policy, kinds, letters, count)
        kind = kinds[max(choice, 0)]
        if choice < 0:
            kind = best_ratio(frontier, blockers, kinds, count)
            unseen += 1
            for other in kinds[:count]:
                unknown |= to_policy[other] < 0
        unblock(graph, frontier, blockers, kind)
        if encoding == CRITICAL:
            run_critical_batch(graph, frontier, record, critical, kind)
        else:
            run_batch(graph, frontier, record, kind)
    return unseen, unknown


@njit(cache=True)
def decide(
    frontier: Frontier,
    record: Record,
    critical: Critical,
    table: StateTable,
    encoding: int,
    to_policy: np.ndarray,
    kinds: np.ndarray,
    letters: np.ndarray,
    count: int,
) -> int:
    """The position in `kinds` of the type that the table chooses, or -1 in an unseen state."""
    if count == 1:
        return 0  # nothing to decide
    for index in range(count):
        letters[index] = to_policy[kinds[index]]
        if letters[index] < 0:
            return -1
    ready = frontier.end - frontier.begin
    done = record.offsets[record.length[0]] / len(record.order)
    mark = encode(encoding, ready, critical.reach, letters, kinds, count, done)
    state, _ = find(table, letters, count, mark)
    return table.choice[state] if state >= 0 else -1
