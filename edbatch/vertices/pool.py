"""The inputs of all vertices, as one column."""

from __future__ import annotations

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.vertices.column import Column
from edbatch.vertices.vertex_graph import Use


class Pool:
    """Columns one after the other, and integers checked against what they index.

    Args:
        recordings: per vertex.
        ranks: per vertex how many of its kind come before it.
    """

    def __init__(self, recordings: np.ndarray, ranks: np.ndarray) -> None:
        self._recordings = recordings
        self._ranks = ranks
        self._columns: list[np.ndarray] = []
        self._begins: dict[int, int] = {}  # by identity
        self._from_the_end: dict[int, np.ndarray] = {}  # by identity of a use: none of these is negative
        self._n = 0

    def check(self, name: str, recording: int, use: Use) -> None:
        """See that the integers of all vertices of a recording are in range; `name`: of their function.

        Raises:
            EdBatchError: one is not; the vertex is named.
        """
        if use.column.largest < use.size:  # nor is any negative
            return
        (vertices,) = (self._recordings == recording).nonzero()
        found = use.column.values[self._ranks[vertices]]
        wrong = (found < (0 if use.is_label else -use.size)) | (found >= use.size)
        if wrong.any():
            at = int(wrong.argmax())
            what = (
                f"no label, expected one in [0, {use.size})" if use.is_label else f"out of range for {use.size} entries"
            )
            raise EdBatchError(f"{name}, vertex {vertices[at]}: {use.place}: {found[at]} is {what}")
        if (found < 0).any():
            values = use.column.values
            self._from_the_end[id(use)] = np.where(values < 0, values + use.size, values)

    def begin(self, of: Column | Use) -> int:
        """Where a column begins, or the one that a use reads."""
        column = of if isinstance(of, Column) else of.column
        values = self._from_the_end.get(id(of), column.values)
        if id(values) not in self._begins:
            self._begins[id(values)] = self._n
            self._columns.append(values)
            self._n += len(values)
        return self._begins[id(values)]

    def values(self) -> np.ndarray:
        """All columns that have been asked for."""
        if len(self._columns) == 1:
            return self._columns[0]
        return np.concatenate([np.empty(0, np.int64), *self._columns])
