"""Which rows of a list are the same: what is added to one of them is added by one thread, in the list's order."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled


@compiled(small=True)
def group_rows(rows: np.ndarray, seen: np.ndarray, this: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups of a list of rows, in the order in which rows first occur; linear in the list.

    Args:
        seen: int32 [2, more than any row], changed: by row the last list that it was in, and its group there.
        this: the list, another number than any in `seen[0]`.

    Returns:
        The rows that occur, each once; where each group's members begin; positions in the list, ascending in a group.
    """
    n, groups = len(rows), 0
    for row in rows:
        if seen[0, row] != this:
            seen[0, row], seen[1, row] = this, groups
            groups += 1
    found = np.empty(groups, np.int32)
    offsets = np.zeros(groups + 1, np.int32)
    members = np.empty(n, np.int32)
    for row in rows:
        at = seen[1, row]
        found[at] = row
        offsets[at + 1] += 1
    for at in range(groups):
        offsets[at + 1] += offsets[at]
    next_of = offsets[:-1].copy()
    for i in range(n):
        at = seen[1, rows[i]]
        members[next_of[at]] = i
        next_of[at] += 1
    return found, offsets, members
