"""Which rows of a list are the same: what is added to one of them is added by one thread, in the list's order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled


class Groups(NamedTuple):
    """Rows that occur, each once, and where.

    Attributes:
        rows: int32 [groups].
        offsets: int32 [groups + 1], where each group's members begin.
        members: int32 [n], positions in the list; ascending in each group.
    """

    rows: np.ndarray
    offsets: np.ndarray
    members: np.ndarray


def group(rows: np.ndarray) -> Groups | None:
    """The groups of a list of rows; None if no row occurs twice.

    Example:
        >>> group(np.array([7, 2, 7], np.int32)).members.tolist()
        [0, 2, 1]
        >>> group(np.array([7, 2], np.int32)) is None
        True
    """
    found = group_rows(rows, np.full((2, rows.max(initial=0) + 1), -1, np.int32), 0)
    return None if len(found[0]) == len(rows) else Groups(*found)


@compiled(small=True)
def group_rows(rows: np.ndarray, seen: np.ndarray, this: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, offsets and members of groups, in the order in which rows first occur; linear in the list.

    Args:
        seen: int32 [2, more than any row], changed: by row the last list that it was in, and its group there.
        this: the list, another number than any in `seen[0]`.
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
