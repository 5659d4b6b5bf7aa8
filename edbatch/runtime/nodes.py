"""The nodes a graph has taken over from its recorded columns, in growing arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.memory.plan.growing import GrowingTables

#: Nodes and operands of a graph: plans count in 32 bits, and name every operand several times.
MOST = 2**28
_INT32 = np.dtype(np.int32)


class Nodes(GrowingTables):
    """Columns over all nodes of a graph, of which `n` entries are in use; see `memory.plan.columns.NodeColumns`."""

    dtypes = _INT32, _INT32, _INT32, np.dtype(np.int64), _INT32

    def __init__(self) -> None:
        self.n = 0
        self.n_args = 0
        super().__init__()

    types: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    args: np.ndarray
    row: np.ndarray

    def _in_use(self) -> Sequence[int]:
        return self.n, self.n, self.n, self.n_args, self.n

    def _use(self, counts: Sequence[int]) -> None:
        self.n, self.n_args = counts[0], counts[3]

    def clear(self) -> None:
        """Have no nodes, and the same room."""
        self.n = self.n_args = 0

    def reserve(self, n: int, n_args: int) -> None:
        """Append `n` nodes with `n_args` integers, all of which are to be filled in.

        Raises:
            EdBatchError: rows and places in the index buffer of their plan could not be numbered.
        """
        n, n_args = self.n + n, self.n_args + n_args
        if n + n_args > MOST:
            raise EdBatchError(
                f"a graph of {n:,} nodes with {n_args:,} operands: expected at most {MOST:,} together; use several "
                "graphs"
            )
        if n > len(self.types) or n_args > len(self.args):
            self.make_room((*[2 * n] * 3, 2 * n_args, 2 * n))
        self.n, self.n_args = n, n_args

    @property
    def directory(self) -> np.ndarray:
        """Of the columns, as compiled code is given it: of types and args those in use."""
        self._lengths[0], self._lengths[3] = self.n, self.n_args
        return self._directory.entries

    def _hold(self, tables: Sequence[np.ndarray]) -> None:
        super()._hold(tables)
        self._lengths = self._directory.entries[:, 1]
        self.types, self.starts, self.counts, self.args, self.row = tables
