"""Where gradients flow in a graph, in tables that compiled passes fill in and the next way back uses again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import BOOL, INT64, Directory, table
from edbatch.runtime.backward.records import PART, PRESENT


class FlowColumns(NamedTuple):
    """Where gradients flow.

    Attributes:
        requires: per node, whether its gradient was asked for.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none do.
        parts: of records `Part`: batches are divided by the sets of their nodes.
        rows: per set, how many nodes have it.
        present: of records `Present`, the sets that nodes have.
    """

    requires: np.ndarray
    sets: np.ndarray
    parts: np.ndarray
    rows: np.ndarray
    present: np.ndarray


@compiled(small=True)
def flow_in(flow: np.ndarray) -> FlowColumns:
    """The columns of a directory of them."""
    return FlowColumns(
        table(flow, 0, BOOL),
        table(flow, 1, INT64),
        table(flow, 2, PART),
        table(flow, 3, INT64),
        table(flow, 4, PRESENT),
    )


class Flow:
    """The columns, with room for more.

    Attributes:
        bytes: of all columns, with their room.
    """

    def __init__(self) -> None:
        self._hold(FlowColumns(*_of_nodes(0), *_of_sets(0)))

    @property
    def columns(self) -> FlowColumns:
        """With all their room."""
        return self._directory.tables

    @property
    def entries(self) -> np.ndarray:
        """Of the directory, as compiled code is given it."""
        return self._directory.entries

    def reserve(self, nodes: int, sets: int) -> None:
        """Have room for so many nodes, and for so many sets; what is in columns that grow does not stay."""
        room_of_nodes, room_of_sets = self._room
        if nodes <= room_of_nodes and sets <= room_of_sets:
            return
        before = self.columns
        of_nodes, of_sets = before[:3], before[3:]
        if nodes > room_of_nodes:
            of_nodes = _of_nodes(max(nodes, 2 * room_of_nodes))
        if sets > room_of_sets:
            of_sets = _of_sets(2 * sets)
        self._hold(FlowColumns(*of_nodes, *of_sets))

    def _hold(self, columns: FlowColumns) -> None:
        self._room = 0, 0  # until all is there
        self._directory = Directory(columns)  # at once: an interrupt leaves no address of what is gone
        self.bytes = sum(column.nbytes for column in columns)
        self._room = len(columns.sets), len(columns.rows)


def _of_nodes(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, PART)


def _of_sets(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(n, np.int64), np.empty(n, PRESENT)
