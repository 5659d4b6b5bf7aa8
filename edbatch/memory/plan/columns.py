"""A graph as compiled passes read it: columns over its nodes, and over the types of these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.array_table import BOOL, INT32, INT64, reader
from edbatch.compiling.compiled import compiled


class NodeColumns(NamedTuple):
    """What nodes are, and what they read.

    Attributes:
        types: per node, the number of its type.
        starts, counts: per node, where its operands are in `args`, and how many.
        args: operand ids (the node in the lower 32 bits, the code of a view above), and after those of each node, where
            its integers are among the graph's.
        row: per node, the row of its value in the arena of its type, once that is planned.
    """

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    args: np.ndarray
    row: np.ndarray


class TypeColumns(NamedTuple):
    """What is known of types and views.

    Attributes:
        numbers: per type id the type's number; -1 before it was seen.
        view_windows: per code of a view, its window; -1 before it was seen.
        n_operands: per type, how many operands its nodes have; -1: that varies.
        n_integers: per type, how many integers.
        singles, lists: per type, how many single operands come before how many lists; see `span`.
        windows: per type, the plain window of its results.
        arenas: per type, the number of their arena.
        is_source: per type, whether its values are at hand before anything runs.
        may_split: per type, whether its nodes may be split (see `runtime.split`).
    """

    numbers: np.ndarray
    view_windows: np.ndarray
    n_operands: np.ndarray
    n_integers: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    windows: np.ndarray
    arenas: np.ndarray
    is_source: np.ndarray
    may_split: np.ndarray


nodes_in = reader(NodeColumns, INT32, INT32, INT32, INT64, INT32)
types_in = reader(TypeColumns, *[INT32] * 8, BOOL, BOOL)


@compiled(small=True, inline="always")
def span(starts: np.ndarray, counts: np.ndarray, node: int, slot: int, singles: int, lists: int) -> tuple[int, int]:
    """Which of `args` a node reads as its operand of this number: one, or a list of any length.

    Args:
        singles, lists: of the node's type; lists, which are of one length, come after so many single operands. No
            lists: all are single.
    """
    begin = starts[node] + slot
    if lists == 0 or slot < singles:
        return begin, begin + 1
    length = (counts[node] - singles) // lists
    begin = starts[node] + singles + (slot - singles) * length
    return begin, begin + length
