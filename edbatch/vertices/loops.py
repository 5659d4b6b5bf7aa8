"""The loops over input graphs: their order, and which recording a vertex takes."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled

Structure = tuple[np.ndarray, np.ndarray, np.ndarray]  # order (empty: that of the numbers), offsets, children

# Where reading `offsets` and `children` went wrong.
GOOD, BAD_OFFSET, OUT_OF_RANGE = range(3)


@compiled(small=True)
def check(offsets: np.ndarray, children: np.ndarray) -> tuple[int, int, bool]:
    """What is wrong first, at which vertex, and whether every child comes before its parent."""
    n = len(offsets) - 1
    in_order = True
    for vertex in range(n):
        if offsets[vertex + 1] < offsets[vertex] or offsets[vertex + 1] > len(children):
            return BAD_OFFSET, vertex, False
        for at in range(offsets[vertex], offsets[vertex + 1]):
            child = children[at]
            if child < 0 or child >= n:
                return OUT_OF_RANGE, vertex, False
            if child >= vertex:
                in_order = False
    return GOOD, 0, in_order


@compiled(small=True)
def depth_first(offsets: np.ndarray, children: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order in which children come before parents, and a path: one that ends where it begins, if there is no such
    order, else an empty one."""
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
def is_gathered(children: np.ndarray, n: int) -> np.ndarray:
    """Per vertex whether it is a child."""
    found = np.zeros(n, np.bool_)
    for at in range(len(children)):
        found[children[at]] = True
    return found


@compiled(small=True)
def group(
    structure: Structure, kinds: np.ndarray, n_kinds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vertices by kind, and by shape: those of one kind with as many children.

    Returns:
        How many there are of each kind; per vertex how many of its kind come before it; per vertex its shape, in the
        order in which they come; per shape its first vertex, how many there are, and whether one is gathered.
    """
    order, offsets, children = structure
    n = len(kinds)
    n_of_kind = np.zeros(n_kinds, np.int64)
    ranks = np.empty(n, np.int64)
    most = 0
    for vertex in range(n):
        kind = kinds[vertex]
        ranks[vertex] = n_of_kind[kind]
        n_of_kind[kind] += 1
        most = max(most, offsets[vertex + 1] - offsets[vertex])
    known = np.full((n_kinds, most + 1), -1, np.int32)
    shapes = np.empty(n, np.int32)
    firsts = np.empty(min(n, known.size), np.int64)
    sizes = np.zeros(len(firsts), np.int64)
    n_shapes = 0
    for step in range(n):
        vertex = order[step] if len(order) else step
        n_children = offsets[vertex + 1] - offsets[vertex]
        shape = known[kinds[vertex], n_children]
        if shape < 0:
            shape = known[kinds[vertex], n_children] = n_shapes
            firsts[shape] = vertex
            n_shapes += 1
        shapes[vertex] = shape
        sizes[shape] += 1
    gathered = np.zeros(n_shapes, np.bool_)
    for at in range(len(children)):
        gathered[shapes[children[at]]] = True
    return n_of_kind, ranks, shapes, firsts[:n_shapes].copy(), sizes[:n_shapes].copy(), gathered


@compiled(small=True)
def classify(
    first: int,
    structure: Structure,
    start: np.ndarray,
    next_state: np.ndarray,
    recording: np.ndarray,
    form: np.ndarray,
    recordings: np.ndarray,
) -> int:
    """Which recording each vertex takes: that of its kind for as many children, of such forms.

    Args:
        first: the step to begin with.
        structure: order (empty: that of the numbers), offsets, children.
        start: per vertex the state to begin with.
        next_state: [state, form], -1 for what is not known yet.
        recording: per state, -1 for what is not known yet.
        form: per recording.
        recordings: per vertex its recording; filled in.

    Returns:
        The first step whose recording is not known; the number of vertices if there is none.
    """
    order, offsets, children = structure
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
    return len(start)
