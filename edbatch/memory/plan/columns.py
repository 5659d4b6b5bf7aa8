"""A graph as compiled passes read it: columns over its nodes.

Python hands a record to a compiled function as a plain tuple, whose types Numba finds out in 0.1 us where it takes 1 us
for a named one; the function names its entries again: `nodes = NodeColumns(*columns)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
