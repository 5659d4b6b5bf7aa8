"""The plan of all that a graph has run: every run appends its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edbatch.base.records import record_type
from edbatch.compiling.array_table import ArrayTable, reader
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, Plan


class Used(NamedTuple):
    """How many entries of a plan's tables are in use."""

    batches: int
    operands: int
    segments: int
    indices: int
    integers: int
    nodes: int


USED = record_type(Used._fields)
_DTYPES = (BATCH, OPERAND, SEGMENT, *[np.dtype(np.int32)] * 3)


class PlanTables(NamedTuple):
    """The tables of a plan as compiled code reads and writes them, with all their room: `used`, one record, counts."""

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    integers: np.ndarray
    nodes: np.ndarray
    used: np.ndarray


tables_in = reader(PlanTables, *_DTYPES, USED)
LISTS = 4  # operands that a node without any may have: empty lists


class GrowingPlan:
    """Tables with room for more.

    Attributes:
        batches, indices, integers: these tables, with all their room; types: of the batches.
        bytes: of all tables, with their room.
    """

    def __init__(self) -> None:
        self._used = np.zeros(1, USED)
        self._counts = self._used.view(np.int64)
        self._hold([np.empty(0, dtype) for dtype in _DTYPES])

    @property
    def entries(self) -> np.ndarray:
        """Directory of the tables of a `Plan`, with all their room, of the nodes, batch after batch, and one `Used`."""
        return self._directory.entries

    @property
    def used(self) -> Used:
        """How many entries are in use."""
        return Used._make(self._counts.tolist())

    @property
    def tables(self) -> Plan:
        """Those in use."""
        return Plan(*(table[:n] for table, n in zip(self._tables[:5], self._counts.tolist(), strict=False)))

    @property
    def nodes(self) -> np.ndarray:
        """Of the graph, batch after batch."""
        return self._tables[5][: self.used.nodes]

    def reserve(self, nodes: int, args: int) -> None:
        """Have room for the batches of so many nodes in all, with so many operands and other integers."""
        n, m = self._room
        if nodes > n or args > m:
            more = 3 if self._counts[0] else 1  # where the graph grows, there will be more
            n, m = max(n, more * nodes), max(m, more * args)
            self.make_room((n, m + LISTS * n, m, 3 * n + 2 * m, m, n))

    def make_room(self, sizes: Sequence[int]) -> None:
        """Have at least so many entries in each table; what is in use stays."""
        tables = []
        for old, used, size in zip(self._tables, self._counts.tolist(), sizes, strict=False):
            new = old
            if size > len(old):
                new = np.empty(size, old.dtype)  # what is not touched costs nothing
                new[:used] = old[:used]
            tables.append(new)
        self._hold(tables)

    def copy(self) -> GrowingPlan:
        """The same batches in tables without room for more."""
        made = GrowingPlan()
        made._hold([table[:used].copy() for table, used in zip(self._tables, self._counts.tolist(), strict=True)])
        made._counts[:] = self._counts
        return made

    def put(self, other: GrowingPlan) -> None:
        """Have the batches of another, in a plan that is empty and has room for them."""
        for table, given, used in zip(self._tables, other._tables, other._counts.tolist(), strict=True):
            table[:used] = given[:used]
        self._counts[:] = other._counts

    def become(self, other: GrowingPlan) -> None:
        """Have the batches of another; there will be no more."""
        if any(len(table) < used for table, used in zip(self._tables, other._counts.tolist(), strict=True)):
            self.make_room(other.used)
        self.put(other)

    def clear(self) -> None:
        """Have nothing in use, and the same room."""
        self._counts[:] = 0

    def _hold(self, tables: list[np.ndarray]) -> None:
        self._directory = ArrayTable((*tables, self._used))  # at once: an interrupt leaves no address of what is gone
        self.batches, self.indices, self.integers = tables[0], tables[3], tables[4]
        self.types = self.batches["type"]
        self.bytes = sum(table.nbytes for table in tables)
        batches, operands, segments, indices, integers, nodes = map(len, tables)
        n = min(batches, nodes)
        self._room = n, min(operands - LISTS * n, segments, integers, (indices - 3 * n) // 2)

    @property
    def _tables(self) -> tuple[np.ndarray, ...]:
        return self._directory.tables[:6]
