"""The nodes a graph has taken over from its recorded columns, in growing arrays."""

from __future__ import annotations

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.memory.plan.columns import Columns

#: Nodes and operands of a graph: plans count in 32 bits, and name every operand several times.
MOST = 2**28


class Nodes:
    """Columns over all nodes of a graph; `n` of the allocated entries are in use.

    Attributes:
        types: number of the node's type in the graph's `TypeTable`.
        starts, counts: where its operands are in `args`, and how many.
        row: where its value lies, in the arena of its type.
        args: operand ids (node and view) and payloads of all nodes.
    """

    PER_NODE = ("types", "starts", "counts", "row")

    def __init__(self) -> None:
        self.n = 0
        self.n_args = 0
        self.args = np.empty(0, np.int64)
        for name in self.PER_NODE:
            setattr(self, name, np.empty(0, np.int32))

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    row: np.ndarray

    def columns(self, first: int = 0) -> Columns:
        """The `NodeColumns` of the nodes from `first` on."""
        n = self.n
        return self.types[first:n], self.starts[first:n], self.counts[first:n], self.args[: self.n_args]

    def reserve(self, n: int, n_args: int) -> None:
        """Append `n` nodes with `n_args` integers, all of which are to be filled in.

        Raises:
            EdBatchError: rows and places in the index buffer of their plan could not be numbered.
        """
        if self.n + n + self.n_args + n_args > MOST:
            raise EdBatchError(
                f"a graph of {self.n + n:,} nodes with {self.n_args + n_args:,} operands: expected at most {MOST:,} "
                "together; use several graphs"
            )
        for name in self.PER_NODE:
            setattr(self, name, _grown(getattr(self, name), self.n, self.n + n))
        self.args = _grown(self.args, self.n_args, self.n_args + n_args)
        self.n += n
        self.n_args += n_args

    def copy(self) -> Nodes:
        """The same nodes in arrays of their own."""
        made = Nodes()
        made.n, made.n_args, made.args = self.n, self.n_args, self.args.copy()
        for name in self.PER_NODE:
            setattr(made, name, getattr(self, name).copy())
        return made


def _grown(column: np.ndarray, used: int, size: int) -> np.ndarray:
    if size <= len(column):
        return column
    grown = np.empty(2 * size, column.dtype)  # what is not touched costs nothing
    grown[:used] = column[:used]
    return grown
