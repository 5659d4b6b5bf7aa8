"""The lower bound on the number of batches: appendix A.3, equation (2)."""

from typing import Literal, get_args

from edbatch.base.later import Later
from edbatch.errors import EdBatchError
from edbatch.policy.typed_graph import TypedGraph

bound_loops = Later("edbatch.policy.bound_loops")

Reading = Literal["path", "direct"]


def lower_bound(graph: TypedGraph, reading: Reading = "path") -> int:
    """No schedule of `graph` has fewer batches: Σ_t Depth(G^t).

    Depth(G^t) is the largest number of type-t nodes on any one path ("path"), or on a path of type-t
    nodes only ("direct", weaker). A schedule with this many batches is optimal.

    Raises:
        EdBatchError: unknown reading, or the graph has a cycle.

    Example:
        >>> graph = TypedGraph.from_lists(["a", "b", "a"], [[], [0], [1]])
        >>> lower_bound(graph), lower_bound(graph, "direct")
        (3, 2)
    """
    if reading not in get_args(Reading):
        raise EdBatchError(f"lower_bound: reading must be 'path' or 'direct', not {reading!r}")
    bound = bound_loops.path_bound if reading == "path" else bound_loops.direct_bound
    return int(bound(graph.columns(), len(graph.names)))
