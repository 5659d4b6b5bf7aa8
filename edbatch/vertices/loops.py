"""The loops over input graphs: their order, and which recording a vertex takes."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled

Structure = tuple[np.ndarray, np.ndarray, np.ndarray]  # order (empty: that of the numbers), offsets, children


@compiled(small=True)
def depth_first(offsets: np.ndarray, children: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order in which children come before parents, and a path: one that ends where it begins, if there is no such
    order, else an empty one.
    """
    n = len(offsets) - 1
    order = np.empty(n, np.int64)
    path = np.empty(n + 1, np.int64)
    place = np.full(n, -1, np.int64)  # on the path; -1: not seen, -2: done
    next_child = offsets[:-1].copy()
    done = 0
    for root in range(n):
        if place[root] != -1:
            continue
        depth = 0
        path[0], place[root] = root, 0
        while depth >= 0:
            vertex = path[depth]
            if next_child[vertex] == offsets[vertex + 1]:
                place[vertex] = -2
                order[done] = vertex
                done += 1
                depth -= 1
                continue
            child = children[next_child[vertex]]
            next_child[vertex] += 1
            if place[child] >= 0:
                path[depth + 1] = child
                return order[:0].copy(), path[place[child] : depth + 2].copy()
            if place[child] == -1:
                depth += 1
                path[depth], place[child] = child, depth
    return order, path[:0].copy()


@compiled(small=True)
def classify(
    first: int,
    structure: Structure,
    start: np.ndarray,
    tables: tuple[np.ndarray, np.ndarray, np.ndarray],
    recordings: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Fill in the recording of each vertex, and count those of each; the first step whose recording is not known yet.

    Args:
        first: the step to begin with; start: per vertex the state to begin with.
        tables: see `Automaton._as_arrays`.
    """
    order, offsets, children = structure
    next_state, recording, form = tables
    for step in range(first, len(start)):
        vertex = order[step] if len(order) else step
        state = start[vertex]
        for at in range(offsets[vertex], offsets[vertex + 1]):
            state = next_state[state, form[recordings[children[at]]]]
            if state < 0:
                return step
        if recording[state] < 0:
            return step
        recordings[vertex] = recording[state]
        counts[recording[state]] += 1
    return len(start)
