"""The smallest number of batches of a small graph, by exhaustive search; batching is NP-hard (appendix A.1)."""

from __future__ import annotations

from edbatch.policy.typed_graph import TypedGraph


def minimum_batches(graph: TypedGraph) -> int:
    """The length of the shortest batching sequence of `graph`, which has a dozen nodes.

    Breadth first over sets of executed nodes. Running every ready node of a type is never worse than
    running some of them, so one successor per ready type is enough.

    Example:
        >>> minimum_batches(TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]]))
        3
    """
    nodes, types = len(graph), graph.types.tolist()
    rows = [graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist() for node in range(nodes)]
    needs = [sum(1 << operand for operand in set(row)) for row in rows]

    def ready_sets(executed: int) -> dict[int, int]:
        ready: dict[int, int] = {}
        for node in range(nodes):
            if not executed >> node & 1 and needs[node] & ~executed == 0:
                ready[types[node]] = ready.get(types[node], 0) | 1 << node
        return ready

    level, batches = {0}, 0
    while (1 << nodes) - 1 not in level:
        level = {done | batch for done in level for batch in ready_sets(done).values()}
        batches += 1
    return batches
