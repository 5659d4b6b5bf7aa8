"""The topological sorts of Suarez and Zhu (2019, section 2) as compiled passes: when each node runs."""

import numpy as np

from edbatch.compiling.compiled import compiled


@compiled(small=True)
def columns_of_rows(indptr: np.ndarray, operands: np.ndarray, user_indptr: np.ndarray) -> np.ndarray:
    """int32[n]: the column of every node, where each sample is a row of its nodes, depth first.

    What takes a node of another row, an input of several samples, stands behind it. Nodes that join all samples, as
    the sum of their losses does, are no row's: they come last, one by one.
    """
    nodes = len(indptr) - 1
    waiting = user_indptr[1:] - user_indptr[:-1]
    joins = np.empty(nodes, np.int32)
    n_joins = _set_joins_aside(indptr, operands, waiting, joins)
    row = _samples(indptr, operands, waiting)
    next_column = np.zeros(nodes, np.int32)  # of every row
    column = np.full(nodes, -1, np.int32)
    cursor = indptr[:-1].copy()
    stack = np.empty(nodes, np.int32)
    last = 0
    for root in range(nodes):
        if waiting[root] != 0:
            continue
        stack[0], depth = root, 1
        while depth:
            node = stack[depth - 1]
            if cursor[node] < indptr[node + 1]:
                operand = operands[cursor[node]]
                cursor[node] += 1
                if column[operand] < 0:
                    stack[depth] = operand
                    depth += 1
                continue
            depth -= 1
            if indptr[node] == indptr[node + 1] and depth:
                row[node] = row[stack[depth - 1]]  # an input is of the row that takes it first
            at = next_column[row[node]]
            for edge in range(indptr[node], indptr[node + 1]):
                at = max(at, column[operands[edge]] + 1)
            column[node] = at
            next_column[row[node]] = at + 1
            last = max(last, at + 1)
    for place in range(n_joins):
        column[joins[n_joins - 1 - place]] = last + place
    return column


@compiled(small=True)
def _set_joins_aside(indptr: np.ndarray, operands: np.ndarray, waiting: np.ndarray, joins: np.ndarray) -> int:
    """Take roots away as long as there is but one; `waiting` counts a node's users, and is -1 for what is away."""
    roots, root = 0, 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            roots, root = roots + 1, node
    count = 0
    while roots == 1:
        joins[count] = root
        count += 1
        waiting[root] = -1
        roots = 0
        taken = root
        for edge in range(indptr[taken], indptr[taken + 1]):
            waiting[operands[edge]] -= 1
            if waiting[operands[edge]] == 0:
                roots, root = roots + 1, operands[edge]
    return count


@compiled(small=True)
def _samples(indptr: np.ndarray, operands: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """int32[n]: a number for the nodes that are connected, other than by inputs that they take."""
    sample = np.arange(len(waiting), dtype=np.int32)
    for node in range(len(waiting)):
        if waiting[node] < 0:
            continue
        for edge in range(indptr[node], indptr[node + 1]):
            operand = operands[edge]
            if indptr[operand] != indptr[operand + 1]:
                a, b = _first(sample, node), _first(sample, operand)
                sample[max(a, b)] = min(a, b)
    for node in range(len(waiting)):
        sample[node] = _first(sample, node)
    return sample


@compiled(small=True)
def _first(sample: np.ndarray, node: int) -> int:
    """The first node known to be connected with one; the way there is made shorter."""
    while sample[node] != node:
        sample[node] = sample[sample[node]]
        node = sample[node]
    return node
