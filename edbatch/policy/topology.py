"""Compiled passes over the edges of a graph: users of a node, depths, samples and what is on one path."""

import numpy as np

from edbatch.compiling.compiled import compiled


@compiled(small=True)
def successors(indptr: np.ndarray, operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reversed edges: (indptr int32[n + 1], nodes int32[m]); users of a node by ascending id."""
    nodes = len(indptr) - 1
    ends = np.zeros(nodes + 1, np.int32)
    for edge in range(len(operands)):
        ends[operands[edge] + 1] += 1
    for node in range(nodes):
        ends[node + 1] += ends[node]
    users = np.empty(len(operands), np.int32)
    cursor = ends[:-1].copy()
    for node in range(nodes):
        for edge in range(indptr[node], indptr[node + 1]):
            operand = operands[edge]
            users[cursor[operand]] = node
            cursor[operand] += 1
    return ends, users


@compiled(small=True)
def longest_paths(indptr: np.ndarray, operands: np.ndarray, order: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """int32[n]: the most nodes of which `counted` is true on one path that ends at each node."""
    longest = np.empty(len(order), np.int32)
    for node in order:
        most = 0
        for edge in range(indptr[node], indptr[node + 1]):
            most = max(most, longest[operands[edge]])
        longest[node] = most + counted[node]
    return longest


@compiled(small=True)
def repeating_types(
    types: np.ndarray, indptr: np.ndarray, operands: np.ndarray, order: np.ndarray, type_count: int
) -> np.ndarray:
    """int32[T]: numbers from 0 on for the types that occur more than once on some path, -1 for the others."""
    words = (type_count + 63) // 64
    above = np.zeros((len(types), words), np.uint64)  # bit set of the types of a node and its ancestors
    repeats = np.zeros(type_count, np.bool_)
    for node in order:
        kind = types[node]
        bit = np.uint64(1) << np.uint64(kind & 63)
        for edge in range(indptr[node], indptr[node + 1]):
            for word in range(words):
                above[node, word] |= above[operands[edge], word]
        if above[node, kind >> 6] & bit:
            repeats[kind] = True
        above[node, kind >> 6] |= bit
    return np.where(repeats, np.cumsum(repeats) - 1, -1).astype(np.int32)


@compiled(small=True)
def path_bound(types: np.ndarray, indptr: np.ndarray, operands: np.ndarray, order: np.ndarray, type_count: int) -> int:
    """Sum over types of the largest number of nodes of the type on one path."""
    repeats = repeating_types(types, indptr, operands, order, type_count) >= 0
    bound = len(np.unique(types[~repeats[types]]))
    for kind in np.flatnonzero(repeats):  # one type at a time: the column stays in cache
        bound += longest_paths(indptr, operands, order, types == kind).max()
    return int(bound)
