"""A graph as compiled passes read it: columns over its nodes.

Python hands a record to a compiled function as a plain tuple, whose types Numba finds out in 0.1 us where it takes 1 us
for a named one; the function names its entries again: `nodes = NodeColumns(*columns)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled

Columns = tuple[np.ndarray, ...]  # a record, on its way from Python


class NodeColumns(NamedTuple):
    """What nodes are, and what they read.

    Attributes:
        types: per node, the number of its type.
        starts, counts: per node, where its operands are in `args`, and how many.
        args: operand ids (the node in the lower 32 bits, the code of a view above) and payloads.
    """

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    args: np.ndarray


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
