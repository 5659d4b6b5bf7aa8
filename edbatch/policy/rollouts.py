"""Training episodes: schedules of one graph again and again, and what they teach a table."""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.critical import Critical, new_critical
from edbatch.policy.frontier import new_frontier
from edbatch.policy.fsm_loop import Trajectory, new_trajectory
from edbatch.policy.state_table import StateTable
from edbatch.policy.typed_graph import Columns, GraphColumns, TypedGraph


class Arena(NamedTuple):
    """A training graph with room for one episode."""

    graph: Columns
    critical: Critical
    to_policy: np.ndarray  # int32[T]: the policy's letter of each of the graph's types
    trajectory: Trajectory
    work: int  # what an episode costs: nodes, edges, and the work ahead


def new_arena(graph: TypedGraph, to_policy: np.ndarray) -> Arena:
    """The arena of a graph; `to_policy` translates its types to the policy's letters."""
    columns = GraphColumns(*graph.columns())
    critical = new_critical(columns, new_frontier(columns, len(graph.names)))
    work = len(graph) + len(graph.operands) + critical.depths.size
    return Arena(graph.columns(), critical, to_policy, new_trajectory(len(graph)), work)


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
        table.visits[states[now]] += 1
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
