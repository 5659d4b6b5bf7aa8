"""The FSM's scheduling loop, compiled: Algorithm 1 with a table of states."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, most_ahead, new_critical, not_critical, run_critical_batch
from edbatch.policy.encodings import CRITICAL, encode, without_choice
from edbatch.policy.frontier import Frontier, Record, finished, new_frontier, new_record, ready_types, run_batch
from edbatch.policy.state_table import StateTable, find
from edbatch.policy.typed_graph import Columns, GraphColumns


class Machine(NamedTuple):
    """A table of states on a graph.

    Attributes:
        table: the states.
        to_policy: of the graph's types, the policy's letters.
        letters: room for the types on a frontier.
    """

    table: StateTable
    to_policy: np.ndarray
    letters: np.ndarray


@compiled(small=True)
def run(
    columns: Columns, table: StateTable, encoding: int, to_policy: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Schedule a graph: (order, offsets, types, int32[decisions], whether an unknown type stood in a state).

    The decisions are numbers of states, -1 for unseen ones, in which the rule `critical-path` decides. The work ahead
    is looked at from the first state on that needs it. `to_policy` (int32[T]) translates the graph's types to the
    policy's letters; -1 is an unknown type.
    """
    graph = GraphColumns(*columns)
    type_count = len(to_policy)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    critical, looked = not_critical(), False
    kinds = np.empty(type_count, np.int32)
    machine = Machine(table, to_policy, np.empty(type_count, np.int32))
    states = np.empty(len(graph.types), np.int32)
    decisions, unknown = 0, False
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        choice = without_choice(encoding, frontier, kinds, count)
        if choice < 0:
            if encoding >= CRITICAL and not looked:
                critical, looked = new_critical(graph, frontier), True
            state = state_of(machine, encoding, frontier, record, critical, kinds, count)
            states[decisions] = state
            decisions += 1
            if state >= 0:
                choice = table.choice[state]
            else:
                for other in kinds[:count]:
                    unknown |= to_policy[other] < 0
                if not looked:
                    critical, looked = new_critical(graph, frontier), True
                choice = most_ahead(critical, frontier, kinds, count)
        if looked:
            run_critical_batch(graph, frontier, record, critical, kinds[choice])
        else:
            run_batch(graph, frontier, record, kinds[choice])
    nodes, offsets, batch_types = finished(record)
    return nodes, offsets, batch_types, states[:decisions].copy(), unknown


@compiled(small=True)
def state_of(
    machine: Machine, encoding: int, frontier: Frontier, record: Record, critical: Critical, kinds: np.ndarray,
    count: int,
) -> int:  # fmt: skip
    """The number of the state that the frontier is in, or -1."""
    table, to_policy, letters = machine
    for index in range(count):
        letters[index] = to_policy[kinds[index]]
        if letters[index] < 0:
            return -1
    done = record.offsets[record.length[0]] / len(record.order)
    mark = encode(encoding, frontier, critical, letters, kinds, count, done)
    return find(table, letters, count, mark)[0]
