"""Algorithm 1, compiled: with a fixed rule, and with a table of states, as it runs and as it is learned."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, complete, look_ahead, most_ahead, new_critical, not_critical, raise_reach
from edbatch.policy.encodings import AHEAD, CRITICAL, encode
from edbatch.policy.frontier import (
    finished,
    new_blockers,
    new_frontier,
    new_record,
    ready_types,
    run_batch,
    total_of,
    unblock,
)
from edbatch.policy.state_table import StateTable, insert
from edbatch.policy.typed_graph import Columns, GraphColumns

Made = tuple[np.ndarray, np.ndarray, np.ndarray]  # the arguments of Schedule


@compiled(small=True)
def by_fixed_rule(columns: Columns, type_count: int, rank: np.ndarray) -> Made:
    """The ready type of smallest rank, float64[T], the first of equals; without ranks, that of largest path ratio.

    Of equal ratios that of the larger batch, then the first.
    """
    graph, by_ratio = GraphColumns(*columns), len(rank) == 0
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    blockers, nothing = new_blockers(graph, type_count, by_ratio), not_critical()
    kinds = np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        ready_now = kinds[: ready_types(frontier, kinds)]
        best, best_ready, best_total = ready_now[0], 0, 1
        for kind in ready_now:
            if by_ratio:
                ready, total = frontier.end[kind] - frontier.begin[kind], total_of(frontier, blockers, kind)
                if (ready * best_total, ready) > (best_ready * total, best_ready):
                    best, best_ready, best_total = kind, ready, total
            elif rank[kind] < rank[best]:
                best = kind
        if by_ratio:
            unblock(graph, frontier, blockers, best)
        run_batch(graph, frontier, record, best, nothing.depths, nothing.reach)
    return finished(record)


@compiled(small=True)
def by_critical_path(columns: Columns, type_count: int) -> Made:
    """The rule of `critical.most_ahead`; what is ahead is looked at from the first frontier on that leaves a choice."""
    graph = GraphColumns(*columns)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    nothing, kinds = not_critical(), np.empty(type_count, np.int32)
    while record.offsets[record.length[0]] < len(graph.types):
        position = complete(frontier, kinds, ready_types(frontier, kinds))
        if position < 0:
            break
        run_batch(graph, frontier, record, kinds[position], nothing.depths, nothing.reach)
    if record.offsets[record.length[0]] == len(graph.types):
        return finished(record)
    critical = new_critical(graph, frontier)  # not in that loop: each round would count references to its arrays
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        position = complete(frontier, kinds, count)
        if position < 0:
            position = most_ahead(critical, frontier, kinds, count)
        run_batch(graph, frontier, record, kinds[position], critical.depths, critical.reach)
    return finished(record)


class Trajectory(NamedTuple):
    """Room for the decisions of one schedule."""

    states: np.ndarray  # int32[n]: the number of the state, or -1,
    positions: np.ndarray  # int32[n]: the position of the chosen type in the state's letters,
    rewards: np.ndarray  # float64[n]: and the rewards until the next decision


class Deciding(NamedTuple):
    """How decisions are made beside what the table chooses."""

    alpha: float = 0.0  # weight of the ratio in rewards; 0: no ratio is taken
    epsilon: float = 0.0  # the share of decisions that are random
    greedy: bool = False  # take the largest Q
    chances: np.ndarray = np.empty(0)  # float64[2 n]: per decision whether it is random, and which is taken


def new_trajectory(nodes: int) -> Trajectory:
    """Room for as many decisions as a graph has nodes."""
    return Trajectory(np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.float64))


@compiled(small=True)
def follow(
    columns: Columns, table: StateTable, encoding: int, to_policy: np.ndarray, trajectory: Trajectory,
    critical: Critical, how: Deciding,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, bool]:  # fmt: skip
    """Schedule a graph: (order, offsets, types, number of decisions, whether an unknown type stood in a new state).

    A decision is what the table chooses. A new state enters it with the choice of the rule `critical-path`; where the
    table is full, as that of a machine that is learned, the rule decides. In training decisions may be random, or take
    the largest Q.

    Args:
        to_policy: int32[T], the policy's letter of each of the graph's types; -1 is an unknown type.
        critical: the graph's work ahead; without columns it is looked at from the first state on that needs it.
    """
    alpha, epsilon, greedy, chances = how
    graph, type_count = GraphColumns(*columns), len(to_policy)
    frontier, record = new_frontier(graph, type_count), new_record(len(graph.types))
    blockers = new_blockers(graph, type_count, alpha > 0)
    critical.reach[:] = 0
    raise_reach(critical, frontier, frontier.begin)
    kinds, letters = np.empty(type_count, np.int32), np.empty(type_count, np.int32)
    decisions, unknown = 0, False
    while record.offsets[record.length[0]] < len(graph.types):
        count = ready_types(frontier, kinds)
        position = complete(frontier, kinds, count) if count == 1 or encoding == AHEAD else -1
        decides = position < 0
        if decides:
            if encoding >= CRITICAL:
                critical = look_ahead(critical, graph, frontier)
            before, state, known = table.size[0], -1, True
            for index in range(count):
                letters[index] = to_policy[kinds[index]]
                known &= letters[index] >= 0
            if known:
                done = record.offsets[record.length[0]] / len(record.order)
                mark = encode(encoding, frontier, critical, letters, kinds, count, done)
                state = insert(table, letters, count, mark)
            unknown |= not known
            if state < 0 or table.size[0] > before:
                critical = look_ahead(critical, graph, frontier)
                position = most_ahead(critical, frontier, kinds, count)
            else:
                position = table.choice[state]
            if table.size[0] > before:
                table.choice[state] = position
            if epsilon > 0 and chances[2 * decisions] < epsilon:
                position = int(chances[2 * decisions + 1] * count)
            elif greedy and state >= 0:
                position = int(np.argmax(table.q[table.start[state] : table.start[state + 1]]))
            trajectory.states[decisions], trajectory.positions[decisions] = state, position
            trajectory.rewards[decisions] = 0.0
            decisions += 1
        kind = kinds[position]
        if alpha > 0:
            ratio = 1.0  # of a type that is ready alone
            if decides:
                ratio = (frontier.end[kind] - frontier.begin[kind]) / total_of(frontier, blockers, kind)
            if decisions > 0:
                trajectory.rewards[decisions - 1] += alpha * ratio - 1.0
            unblock(graph, frontier, blockers, kind)
        run_batch(graph, frontier, record, kind, critical.depths, critical.reach)
    order, offsets, types = finished(record)
    return order, offsets, types, decisions, unknown


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
def learn_from(
    trajectory: Trajectory, table: StateTable, decisions: int, rate: float, discount: float, steps: int
) -> None:
    """n-step Q-learning over a recorded trajectory, last decision first.

    Q(s_t, a_t) moves towards r_t + ... + r_{t+n-1} + max_a Q(s_{t+n}, a), a among the types tried.
    """
    states, positions, rewards = trajectory
    for now in range(decisions - 1, -1, -1):
        ahead = min(now + steps, decisions)
        target = 0.0
        if ahead < decisions:
            position = best_tried(table, states[ahead])
            target = table.q[table.start[states[ahead]] + position] if position >= 0 else 0.0
        for step in range(ahead - 1, now - 1, -1):
            target = rewards[step] + discount * target
        entry = table.start[states[now]] + positions[now]
        table.q[entry] += rate * (target - table.q[entry])


@compiled
def take_best(table: StateTable) -> None:
    """Choose in every state the type with the largest Q, if any was tried there."""
    for state in range(table.size[0]):
        position = best_tried(table, state)
        if position >= 0:
            table.choice[state] = position
