"""The lower bounds of appendix A.3, compiled."""

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.policy.ratio import repeating_types
from edbatch.policy.typed_graph import Columns, GraphColumns


@compiled(small=True)
def path_bound(columns: Columns, type_count: int) -> int:
    """Sum over types of the largest number of nodes of the type on one path; `columns` are `GraphColumns`."""
    graph = GraphColumns(*columns)
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    repeats, _ = repeating_types(graph, type_count)
    present = np.zeros(type_count, np.bool_)
    for kind in types:
        present[kind] = True
    longest = np.empty(len(types), np.int32)  # one type at a time: the column stays in cache
    bound = 0
    for kind in range(type_count):
        if not repeats[kind]:
            bound += present[kind]  # the common case costs nothing
            continue
        most = 0
        for node in graph.order:
            longest_here = 0
            for edge in range(indptr[node], indptr[node + 1]):
                longest_here = max(longest_here, longest[operands[edge]])
            longest[node] = longest_here + (types[node] == kind)
            most = max(most, longest[node])
        bound += most
    return bound


@compiled(small=True)
def direct_bound(columns: Columns, type_count: int) -> int:
    """Sum over types of the longest chain in which each node is an operand of the next."""
    graph = GraphColumns(*columns)
    types, indptr, operands = graph.types, graph.indptr, graph.operands
    longest = np.ones(len(types), np.int32)
    most = np.zeros(type_count, np.int32)
    for node in graph.order:
        for edge in range(indptr[node], indptr[node + 1]):
            operand = operands[edge]
            if types[operand] == types[node]:
                longest[node] = max(longest[node], longest[operand] + 1)
        most[types[node]] = max(most[types[node]], longest[node])
    return int(most.sum())
