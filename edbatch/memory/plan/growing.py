"""Tables that grow, which compiled code finds by a directory; and the plan of all that a graph has run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from edbatch.base.records import record_type
from edbatch.compiling.array_table import ArrayTable, reader
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, Plan


class GrowingTables:
    """Tables with room for more.

    Attributes:
        bytes: of all tables, with their room.
    """

    #: Of each table.
    dtypes: ClassVar[Sequence[np.dtype]]

    def __init__(self) -> None:
        self._hold([np.empty(0, dtype) for dtype in self.dtypes])

    def _in_use(self) -> Sequence[int]:
        """How many entries of each table are in use."""
        raise NotImplementedError

    def _use(self, counts: Sequence[int]) -> None:
        """Have so many in use."""
        raise NotImplementedError

    def make_room(self, sizes: Sequence[int]) -> None:
        """Have at least so many entries in each table; what is in use stays."""
        if all(size <= len(table) for table, size in zip(self._tables, sizes, strict=True)):
            return
        tables = []
        for old, used, size in zip(self._tables, self._in_use(), sizes, strict=True):
            new = old
            if size > len(old):
                new = np.empty(size, old.dtype)  # what is not touched costs nothing
                new[:used] = old[:used]
            tables.append(new)
        self._hold(tables)

    def copy(self) -> Self:
        """The same entries in tables without room for more."""
        made = type(self)()
        made._hold([table[:used].copy() for table, used in zip(self._tables, self._in_use(), strict=True)])
        made._use(self._in_use())
        return made

    def put(self, other: Self) -> None:
        """Have the entries of another, and no others, in tables that have room for them."""
        counts = other._in_use()
        for table, given, used in zip(self._tables, other._tables, counts, strict=True):
            table[:used] = given[:used]
        self._use(counts)

    def _hold(self, tables: Sequence[np.ndarray]) -> None:
        self._directory = ArrayTable(tables)  # at once: an interrupt leaves no address of what is gone
        self.bytes = sum(table.nbytes for table in tables)

    @property
    def _tables(self) -> Sequence[np.ndarray]:
        return self._directory.tables[: len(self.dtypes)]


class Used(NamedTuple):
    """How many entries of a plan's tables are in use."""

    batches: int
    operands: int
    segments: int
    indices: int
    integers: int
    nodes: int


USED = record_type(Used._fields)


class PlanTables(NamedTuple):
    """The tables of a plan as compiled code reads and writes them, with all their room: `used`, one record, counts."""

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    integers: np.ndarray
    nodes: np.ndarray
    used: np.ndarray


LISTS = 4  # operands that a node without any may have: empty lists


class GrowingPlan(GrowingTables):
    """The tables of a `Plan` and the nodes of the graph, batch after batch: every run appends its batches.

    Attributes:
        batches, indices, integers: these tables, with all their room; types: of the batches.
        entries: directory of the `PlanTables`.
    """

    dtypes = BATCH, OPERAND, SEGMENT, *[np.dtype(np.int32)] * 3

    def __init__(self) -> None:
        self._used = np.zeros(1, USED)
        self._counts = self._used.view(np.int64)
        super().__init__()

    @property
    def used(self) -> Used:
        """How many entries are in use."""
        return Used(*self._counts.tolist())

    def _in_use(self) -> Used:
        return self.used

    def _use(self, counts: Sequence[int]) -> None:
        self._counts[:] = counts

    def clear(self) -> None:
        """Have nothing in use, and the same room."""
        self._counts.fill(0)

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

    def _hold(self, tables: Sequence[np.ndarray]) -> None:
        super()._hold((*tables, self._used))
        self.entries = self._directory.entries
        self.batches, self.indices, self.integers = tables[0], tables[3], tables[4]
        self.types = self.batches["type"]
        batches, operands, segments, indices, integers, nodes = map(len, tables)
        n = min(batches, nodes)
        self._room = n, min(operands - LISTS * n, segments, integers, (indices - 3 * n) // 2)


tables_in = reader(PlanTables, *GrowingPlan.dtypes, USED)
