"""Forward runs that save what a backward run will read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.memory.plan.growing import Used
from edbatch.memory.plan.pool import BufferPool
from edbatch.runtime.compile.derivatives import Saving, saving
from edbatch.runtime.compile.list_program import ListProgram
from edbatch.runtime.compile.program import Program
from edbatch.runtime.type_table import TypeTable


class Saved:
    """What the nodes of one type saved in one run: `rows`, one for each, in the order in which they ran.

    Args:
        kept: the record of the type; filled in.
    """

    def __init__(self, how: Saving, rows: int, dtype: np.dtype, pool: BufferPool, kept: np.void) -> None:
        self.how = how
        self._pool = pool
        self.flat: Any = pool.acquire(rows * how.width, dtype)
        self.rows: Any = self.flat[: rows * how.width].reshape(rows, how.width)
        kept["address"], kept["stride"], kept["n"] = pool.address(self.flat), dtype.itemsize * how.width, 0

    def value(self, node: int) -> Any:
        """What was saved of a node of the body, [rows, *shape]."""
        column, spec = self.how.places[node]
        return self.rows[:, column : column + spec.size].reshape(len(self.rows), *spec.shape)

    def release(self) -> None:
        """Give the buffer back."""
        if self.flat is not None:
            flat, self.flat, self.rows = self.flat, None, None
            self._pool.release(flat)


class SavingTable:
    """The programs of a run that saves: those of types of which something is worth saving, and of the others.

    Attributes:
        programs, kept: in the places of those that a `TypeTable` has.
        saved: per number of a type what was saved, if something is, by these batches.
    """

    def __init__(self, table: TypeTable, batches: np.ndarray) -> None:
        self._table = table
        self.count = table.count
        self.programs = table.saving_programs
        self.kept = table.kept
        self.saved: dict[int, Saved] = {}
        present = [(kind, table.bound[kind]) for kind in dict.fromkeys(batches["type"].tolist())]
        worth = [(kind, type, how) for kind, type in present if (how := saving(type, table.backend)) is not None]
        if worth:
            self.kept = np.zeros(len(table.kept), table.kept.dtype)
            rows = np.bincount(batches["type"], batches["n"], table.count)
        for kind, type, how in worth:
            self.saved[kind] = Saved(how, int(rows[kind]), type.type.out.dtype, table.pool, self.kept[kind])

    def program(self, kind: int) -> Program | ListProgram | None:
        """What computes a type and saves, if it is compiled."""
        return self.saved[kind].how.program if kind in self.saved else self._table.program(kind)


class Ran(NamedTuple):
    """A run, as it is kept for going back through it, or several that are gone back through as one.

    Attributes:
        begin, end: what was in use of the graph's plan before and after it.
        n_sources: how many of its batches, the first, hold sources.
        saved: what it saved, per type.
        time: when it was, see `graph.model.writes`.
    """

    begin: Used
    end: Used
    n_sources: int
    saved: dict[int, Saved]
    time: int

    @property
    def extent(self) -> tuple[int, int, int]:
        """The first of its batches, the batch after the last, where its nodes begin among those of the plan."""
        return self.begin.batches, self.end.batches, self.begin.nodes


def stretches(ran: Sequence[Ran]) -> list[Ran]:
    """The runs of a graph as few, the earliest first: those that saved nothing while no parameter changed are one."""
    found: list[Ran] = []
    for one in ran:
        if found and not one.saved and not found[-1].saved and found[-1].time == one.time:
            found[-1] = found[-1]._replace(end=one.end)
        else:
            found.append(one)
    return found
