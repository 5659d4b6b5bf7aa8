"""The lower bounds of appendix A.3, compiled."""

import numpy as np
from numba import njit

from edbatch.policy.ratio import repeating_types


@njit(cache=True)
def path_bound(types, indptr, operands, order, type_count):
    """Sum over types of the largest number of nodes of the type on one path."""
    repeats = repeating_types(types, indptr, operands, order, type_count)
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
        for node in order:
            longest_here = 0
            for edge in range(indptr[node], indptr[node + 1]):
                longest_here = max(longest_here, longest[operands[edge]])
            longest[node] = longest_here + (types[node] == kind)
            most = max(most, longest[node])
        bound += most
    return bound


@njit(cache=True)
def direct_bound(types, indptr, operands, order, type_count):
    """Sum over types of the longest chain in which each node is an operand of the next."""
    longest = np.ones(len(types), np.int32)
    most = np.zeros(type_count, np.int32)
    for node in order:
        for edge in range(indptr[node], indptr[node + 1]):
            operand = operands[edge]
            if types[operand] == types[node]:
                longest[node] = max(longest[node], longest[operand] + 1)
        most[types[node]] = max(most[types[node]], longest[node])
    return most.sum()


@njit(cache=True)
def remaining_depths(types, user_indptr, users, order, type_count):
    """int16[n, T]: the largest number of nodes of each type on a path that starts at a node.

    What has not run is closed under "uses", so the bound of what remains of a graph is the sum over types of
    the maximum over the frontier: these columns never change while the graph is scheduled.
    """
    depths = np.zeros((len(types), type_count), np.int32)
    for index in range(len(order) - 1, -1, -1):
        node = order[index]
        for edge in range(user_indptr[node], user_indptr[node + 1]):
            user = users[edge]
            for kind in range(type_count):
                depths[node, kind] = max(depths[node, kind], depths[user, kind])
        depths[node, types[node]] += 1
    return depths
