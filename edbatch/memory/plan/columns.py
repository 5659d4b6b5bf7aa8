"""A graph as compiled passes read it: columns over its nodes, and over the types of these.

Python hands a record to a compiled function as a plain tuple, whose types Numba finds out in 0.1 us where it takes 1 us
for a named one; the function names its entries again: `nodes = NodeColumns(*columns)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import BOOL, INT32, INT64, table

Columns = tuple[np.ndarray, ...]  # a record, on its way from Python


class NodeColumns(NamedTuple):
    """What nodes are, and what they read.

    Attributes:
        types: per node, the number of its type.
        starts, counts: per node, where its operands are in `args`, and how many.
        args: operand ids (the node in the lower 32 bits, the code of a view above), and after those of each node, where
            its integers are among the graph's.
    """

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    args: np.ndarray


class TypeColumns(NamedTuple):
    """What is known of types and views.

    Attributes:
        numbers: per type id the type's number; -1 before it was seen.
        n_operands: per type, how many operands its nodes have; -1: that varies.
        n_integers: per type, how many integers.
        singles, lists: per type, how many single operands come before how many lists; see `span`.
        is_source: per type, whether its values are at hand before anything runs.
        may_split: per type, whether its nodes may be split (see `runtime.split`).
        windows: per type, the plain window of its results.
        arenas: per type, the number of their arena.
        view_windows: per code of a view, its window; -1 before it was seen.
    """

    numbers: np.ndarray
    n_operands: np.ndarray
    n_integers: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    is_source: np.ndarray
    may_split: np.ndarray
    windows: np.ndarray
    arenas: np.ndarray
    view_windows: np.ndarray


@compiled(small=True)
def nodes_in(nodes: np.ndarray) -> NodeColumns:
    """The columns of a directory of them, after which comes a column of rows."""
    return NodeColumns(table(nodes, 0, INT32), table(nodes, 1, INT32), table(nodes, 2, INT32), table(nodes, 3, INT64))


@compiled(small=True)
def types_in(types: np.ndarray) -> TypeColumns:
    """The columns of a directory of them."""
    return TypeColumns(
        table(types, 0, INT32),
        table(types, 1, INT32),
        table(types, 2, INT32),
        table(types, 3, INT32),
        table(types, 4, INT32),
        table(types, 5, BOOL),
        table(types, 6, BOOL),
        table(types, 7, INT32),
        table(types, 8, INT32),
        table(types, 9, INT32),
    )


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
