"""Which batches bring the lower bound of the remaining graph down, kept up to date while it is scheduled.

What has not run is closed under "uses". So Depth(G^t) of the remaining graph is a maximum over the frontier
of a number that each node keeps for ever: the most type-t nodes on a path that starts there.
"""

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.frontier import Frontier, Record, run_batch
from edbatch.policy.typed_graph import GraphColumns


class Critical(NamedTuple):
    """The bound of what remains is the sum over t of max over s of reach[s, t]."""

    depths: np.ndarray  # int32[n, T]: the most nodes of each type on a path that starts at a node
    reach: np.ndarray  # int32[T, T]: reach[s, t], the largest depths[v, t] of the ready nodes v of type s


@compiled(small=True)
def remaining_depths(graph: GraphColumns, type_count: int) -> np.ndarray:
    """The `depths` of Critical; O(T * edges)."""
    types, user_indptr, users, order = graph.types, graph.user_indptr, graph.users, graph.order
    depths = np.zeros((len(types), type_count), np.int32)
    for index in range(len(order) - 1, -1, -1):
        node = order[index]
        for edge in range(user_indptr[node], user_indptr[node + 1]):
            user = users[edge]
            for kind in range(type_count):
                depths[node, kind] = max(depths[node, kind], depths[user, kind])
        depths[node, types[node]] += 1
    return depths


@compiled(small=True)
def first_reach(frontier: Frontier, depths: np.ndarray) -> np.ndarray:
    """The `reach` of Critical at the start."""
    type_count = len(frontier.begin)
    reach = np.zeros((type_count, type_count), np.int32)
    for kind in range(type_count):
        raise_reach(frontier, depths, reach, kind, frontier.begin[kind])
    return reach


@compiled(small=True)
def new_critical(graph: GraphColumns, frontier: Frontier) -> Critical:
    """The tracker of a graph of which nothing has run."""
    depths = remaining_depths(graph, len(frontier.begin))
    return Critical(depths, first_reach(frontier, depths))


@compiled(small=True)
def not_critical() -> Critical:
    """A placeholder for encodings that do not look at the bound."""
    return Critical(np.zeros((0, 0), np.int32), np.zeros((0, 0), np.int32))


@compiled(small=True)
def raise_reach(frontier: Frontier, depths: np.ndarray, reach: np.ndarray, kind: int, position: int) -> None:
    """Take the nodes of type `kind` into account that became ready at pool[position:]."""
    for node in frontier.pool[position : frontier.end[kind]]:
        for below in range(len(reach)):
            reach[kind, below] = max(reach[kind, below], depths[node, below])


@compiled(small=True)
def run_critical_batch(graph: GraphColumns, frontier: Frontier, record: Record, critical: Critical, kind: int) -> None:
    """`run_batch`, with `reach` kept up to date."""
    before = frontier.end.copy()
    run_batch(graph, frontier, record, kind)
    critical.reach[kind] = 0
    for other in range(len(before)):
        raise_reach(frontier, critical.depths, critical.reach, other, before[other])


@compiled(small=True)
def is_critical(reach: np.ndarray, kinds: np.ndarray, count: int, kind: int) -> bool:
    """Whether a batch of type `kind` brings the bound down (by one; more is not possible).

    It does when every path with the most nodes of that type starts in the batch. `kinds[:count]` are the
    types on the frontier.
    """
    for other in kinds[:count]:  # noqa: SIM110 - Numba compiles the loop, not all(...)
        if other != kind and reach[other, kind] >= reach[kind, kind]:
            return False
    return True
