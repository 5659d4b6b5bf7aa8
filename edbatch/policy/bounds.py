"""The lower bound on the number of batches: appendix A.3, equation (2)."""

from edbatch.base.later import Later
from edbatch.policy.typed_graph import TypedGraph, require_typed_graph

topology = Later("edbatch.policy.topology")


def lower_bound(graph: TypedGraph) -> int:
    """No schedule of `graph` has fewer batches: the sum over types of the most nodes of the type on any one path.

    Raises:
        EdBatchError: the graph has a cycle, or is no TypedGraph.

    Example:
        >>> lower_bound(TypedGraph.from_lists(["a", "b", "a"], [[], [0], [1]]))
        3
    """
    require_typed_graph("lower_bound", graph)
    return int(topology.path_bound(graph.types, graph.indptr, graph.operands, graph.topological, len(graph.names)))
