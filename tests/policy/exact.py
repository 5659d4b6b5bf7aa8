"""The smallest number of batches of a small graph, by exhaustive search; batching is NP-hard (appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence

from edbatch.errors import EdBatchError
from edbatch.policy.typed_graph import TypedGraph

LARGEST = 24  # nodes; the search may visit every set of executed nodes


def minimum_batches(graph: TypedGraph, first: Sequence[str] = ()) -> int:
    """The length of the shortest batching sequence of `graph` that starts with the types `first`.

    Breadth first over sets of executed nodes. Running every ready node of a type is never worse than
    running some of them, so one successor per ready type is enough.

    Raises:
        EdBatchError: more than 24 nodes, a cycle, or no node of a type in `first` is ready.

    Example:
        >>> graph = TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]])
        >>> minimum_batches(graph), minimum_batches(graph, ["a"]), minimum_batches(graph, ["a", "b"])
        (3, 3, 3)
    """
    nodes = len(graph)
    if nodes > LARGEST:
        raise EdBatchError(f"minimum_batches: {nodes} nodes, at most {LARGEST} can be searched")
    _ = graph.topological
    needs = [0] * nodes
    for node in range(nodes):
        for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist():
            needs[node] |= 1 << operand
    types = graph.types.tolist()

    def ready_sets(executed: int) -> dict[int, int]:
        ready: dict[int, int] = {}
        for node in range(nodes):
            if not executed >> node & 1 and needs[node] & ~executed == 0:
                ready[types[node]] = ready.get(types[node], 0) | 1 << node
        return ready

    executed = 0
    for name in first:
        batch = {graph.names[kind]: nodes_of for kind, nodes_of in ready_sets(executed).items()}.get(name)
        if batch is None:
            raise EdBatchError(f"minimum_batches: no node of type {name!r} is ready")
        executed |= batch
    level, batches = {executed}, len(first)
    while (1 << nodes) - 1 not in level:
        level = {done | batch for done in level for batch in ready_sets(done).values()}
        batches += 1
    return batches
