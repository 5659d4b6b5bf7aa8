"""Training episodes, compiled: one schedule of one graph, with states, actions and rewards recorded."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, most_ahead, new_critical, restart, run_critical_batch
from edbatch.policy.encodings import encode, without_choice
from edbatch.policy.frontier import Frontier, Record, new_frontier, new_record, ready_types
from edbatch.policy.ratio import new_blockers, no_blockers, total_of, unblock
from edbatch.policy.state_table import StateTable, insert
from edbatch.policy.typed_graph import GraphColumns, TypedGraph

TABLE_FULL = -1
NO_TEACHER = np.empty(0, np.int32)


class Arena(NamedTuple):
    """A training graph with room for one episode."""

    graph: GraphColumns
    critical: Critical  # looks at the first frontier again when an episode begins
    record: Record
    to_policy: np.ndarray  # int32[T]: the policy's letter of each of the graph's types
    states: np.ndarray  # int32[n]: per decision the state,
    positions: np.ndarray  # int32[n]: the position of the chosen type in the state's letters,
    rewards: np.ndarray  # float64[n]: and the rewards until the next decision


def new_arena(graph: TypedGraph, to_policy: np.ndarray) -> Arena:
    """The arena of a graph; `to_policy` translates its types to the policy's letters."""
    columns, n = GraphColumns(*graph.columns()), len(graph)
    critical = new_critical(columns, new_frontier(columns, len(graph.names)))
    room = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
    return Arena(columns, critical, new_record(n), to_policy, *room)


def work_of(arena: Arena) -> int:
    """What an episode costs: nodes, edges, and the work ahead."""
    return len(arena.graph.types) + len(arena.graph.users) + arena.critical.depths.size


@compiled
def episode(
    arena: Arena,
    table: StateTable,
    encoding: int,
    alpha: float,
    epsilon: float,
    greedy: bool,
    sequence: np.ndarray,
    random: np.random.Generator,
) -> int:
    """Schedule the graph once and record the trajectory; returns the number of decisions, or TABLE_FULL.

    Decisions follow `sequence` (the types a teacher ran) if it is not empty; else they are random with
    probability `epsilon`; else they take the largest Q if `greedy`, else the table's choice. New states
    enter the table with the choice of the rule `critical-path`.
    The number of batches is left in `arena.record.length[0]`.
    """
    graph, critical, record = arena.graph, arena.critical, arena.record
    frontier = new_frontier(graph, len(arena.to_policy))
    blockers = new_blockers(graph, len(arena.to_policy)) if alpha > 0 else no_blockers()
    restart(critical, frontier)
    record.length[0] = 0
    kinds, letters = np.empty(len(arena.to_policy), np.int32), np.empty(len(arena.to_policy), np.int32)
    decisions, taught = 0, 0
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        while taught < len(sequence) and frontier.begin[sequence[taught]] == frontier.end[sequence[taught]]:
            taught += 1  # it ran earlier, without a choice
        position = without_choice(encoding, frontier, kinds, count)
        decides = position < 0
        if decides:
            state = enter(arena, table, encoding, frontier, kinds, letters, count)
            if state < 0:
                return TABLE_FULL
            if len(sequence) > 0:
                position = 0
                while kinds[position] != sequence[taught]:
                    position += 1
            elif epsilon > 0 and random.random() < epsilon:
                position = int(random.random() * count)
            elif greedy:
                position = int(np.argmax(table.q[table.start[state] : table.start[state + 1]]))
            else:
                position = table.choice[state]
            arena.states[decisions] = state
            arena.positions[decisions] = position
            arena.rewards[decisions] = 0.0
            decisions += 1
        kind = kinds[position]
        taught += taught < len(sequence) and sequence[taught] == kind
        if decisions > 0:
            ratio = 1.0  # of a type that is ready alone
            if decides and alpha > 0:
                ratio = (frontier.end[kind] - frontier.begin[kind]) / total_of(frontier, blockers, kind)
            arena.rewards[decisions - 1] += alpha * ratio - 1.0
        if alpha > 0:
            unblock(graph, frontier, blockers, kind)
        run_critical_batch(graph, frontier, record, critical, kind)
    return decisions


@compiled
def enter(
    arena: Arena, table: StateTable, encoding: int, frontier: Frontier, kinds: np.ndarray, letters: np.ndarray,
    count: int,
) -> int:  # fmt: skip
    """The number of the present state, with kinds[:count] in its order; a new one chooses by the rule."""
    record = arena.record
    for index in range(count):
        letters[index] = arena.to_policy[kinds[index]]
    done = record.offsets[record.length[0]] / len(record.order)
    mark = encode(encoding, frontier, arena.critical, letters, kinds, count, done)
    known = table.size[0]
    state = insert(table, letters, count, mark)
    if state >= 0:
        table.visits[state] += 1
    if table.size[0] > known:
        table.choice[state] = most_ahead(arena.critical, frontier, kinds, count)
    return state


@compiled
def best_tried(table: StateTable, state: int) -> int:
    """The position of the largest Q of the types tried in a state, the first of equals; -1 if none was.

    An untried type has Q = 0, more than any that was tried: exploration takes it first, a policy must not.
    """
    best = -1
    first = table.start[state]
    for entry in range(first, table.start[state + 1]):
        if table.q[entry] != 0 and (best < 0 or table.q[entry] > table.q[first + best]):
            best = entry - first
    return best


@compiled
def learn_from(arena: Arena, table: StateTable, decisions: int, rate: float, discount: float, steps: int) -> None:
    """n-step Q-learning over a recorded trajectory, last decision first.

    Q(s_t, a_t) moves towards r_t + ... + r_{t+n-1} + max_a Q(s_{t+n}, a), a among the types tried.
    """
    for now in range(decisions - 1, -1, -1):
        ahead = min(now + steps, decisions)
        target = 0.0
        if ahead < decisions:
            position = best_tried(table, arena.states[ahead])
            target = table.q[table.start[arena.states[ahead]] + position] if position >= 0 else 0.0
        for step in range(ahead - 1, now - 1, -1):
            target = arena.rewards[step] + discount * target
        entry = table.start[arena.states[now]] + arena.positions[now]
        table.q[entry] += rate * (target - table.q[entry])


@compiled
def take_best(table: StateTable) -> None:
    """Choose in every state the type with the largest Q, if any was tried there."""
    for state in range(table.size[0]):
        position = best_tried(table, state)
        if position >= 0:
            table.choice[state] = position
