"""The nodes a graph has taken over from its recorded columns, in growing arrays."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.array_table import ArrayTable
from edbatch.errors import EdBatchError

#: Nodes and operands of a graph: plans count in 32 bits, and name every operand several times.
MOST = 2**28


class Nodes:
    """Columns over all nodes of a graph, of which `n` entries are in use; see `memory.plan.columns.NodeColumns`.

    `row`: where a node's value lies, in the arena of its type.
    """

    PER_NODE = ("types", "starts", "counts", "row")

    def __init__(self) -> None:
        self.n = 0
        self.n_args = 0
        self.args = np.empty(0, np.int64)
        for name in self.PER_NODE:
            setattr(self, name, np.empty(0, np.int32))
        self._renew()

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    row: np.ndarray

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
        if self.n + n > len(self.types):
            for name in self.PER_NODE:
                setattr(self, name, _grown(getattr(self, name), self.n, self.n + n))
            self._renew()
        if self.n_args + n_args > len(self.args):
            self.args = _grown(self.args, self.n_args, self.n_args + n_args)
            self._renew()
        self.n += n
        self.n_args += n_args

    def clear(self) -> None:
        """Have no nodes, and the same room."""
        self.n = self.n_args = 0

    @property
    def bytes(self) -> int:
        """Of all columns, with their room."""
        return self.args.nbytes + len(self.PER_NODE) * self.types.nbytes

    @property
    def directory(self) -> np.ndarray:
        """Of types, starts, counts, args and row, as compiled code is given it: of types and args those in use."""
        self._lengths[0], self._lengths[3] = self.n, self.n_args
        return self._entries

    def _renew(self) -> None:
        self._entries = ArrayTable((self.types, self.starts, self.counts, self.args, self.row)).entries
        self._lengths = self._entries[:, 1]

    def copy(self) -> Nodes:
        """The same nodes in arrays of their own, without room for more."""
        made = Nodes()
        made.n, made.n_args, made.args = self.n, self.n_args, self.args[: self.n_args].copy()
        for name in self.PER_NODE:
            setattr(made, name, getattr(self, name)[: self.n].copy())
        made._renew()
        return made

    def put(self, other: Nodes) -> None:
        """Have the nodes of another, and no others."""
        self.clear()
        self.reserve(other.n, other.n_args)
        for name in self.PER_NODE:
            getattr(self, name)[: self.n] = getattr(other, name)[: self.n]
        self.args[: self.n_args] = other.args[: self.n_args]


def _grown(column: np.ndarray, used: int, size: int) -> np.ndarray:
    grown = np.empty(2 * size, column.dtype)  # what is not touched costs nothing
    grown[:used] = column[:used]
    return grown
