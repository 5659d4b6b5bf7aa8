"""Forward runs that save what a backward run will read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from edbatch.memory.plan.growing import GrowingPlan, Used
from edbatch.memory.plan.pool import BufferPool
from edbatch.runtime.compile.derivatives import Saving, saving
from edbatch.runtime.compile.list_program import ListProgram
from edbatch.runtime.compile.program import Program
from edbatch.runtime.type_table import TypeTable


class Saved:
    """What the nodes of one type saved in one run: a row for each, in the order in which they ran.

    Args:
        how: what is saved.
        rows: how many nodes there are.
        dtype: of the values.
        pool: where the buffer comes from.
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

    Args:
        table: of the graph.
        batches: that will run.

    Attributes:
        programs, kept: in the places of those that a `TypeTable` has.
        saved: per number of a type what was saved, if something is.
    """

    def __init__(self, table: TypeTable, batches: np.ndarray) -> None:
        self._table = table
        self.count = table.count
        self.programs = table.saving_programs
        self.kept = np.zeros_like(table.kept)
        self.saved: dict[int, Saved] = {}
        kinds = batches["type"]
        rows = np.bincount(kinds, batches["n"], table.count)
        for kind in np.flatnonzero(rows).tolist():
            type = table.bound[kind]
            how = saving(type, table.backend)
            if how is not None:
                self.saved[kind] = Saved(how, int(rows[kind]), type.type.out.dtype, table.pool, self.kept[kind])

    def program(self, kind: int) -> Program | ListProgram | None:
        """What computes a type and saves, if it is compiled."""
        return self.saved[kind].how.program if kind in self.saved else self._table.program(kind)


class Ran(NamedTuple):
    """A run, as it is kept for going back through it.

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


class Stretch(NamedTuple):
    """Runs that are gone back through as one plan: one that saved, or some that did not while no parameter changed.

    Attributes:
        plan: of all that the graph has run.
        first, last: of the runs.
    """

    plan: GrowingPlan
    first: Ran
    last: Ran

    @property
    def saved(self) -> dict[int, Saved]:
        """What was saved, per type."""
        return self.first.saved

    @property
    def time(self) -> int:
        """When they were."""
        return self.first.time

    @property
    def extent(self) -> tuple[int, int, int]:
        """The first of their batches, the batch after the last, where their nodes begin among those of the plan."""
        begin = self.first.begin
        return begin.batches, self.last.end.batches, begin.nodes

    @property
    def batches(self) -> np.ndarray:
        """Their batches."""
        return self.plan.tables.batches[self.first.begin.batches : self.last.end.batches]

    @property
    def nodes(self) -> np.ndarray:
        """Their nodes, batch after batch."""
        return self.plan.nodes[self.first.begin.nodes : self.last.end.nodes]


def stretches(ran: Sequence[Ran], plan: GrowingPlan) -> list[Stretch]:
    """The runs of a graph in as few stretches as can be, the earliest first."""
    begins = [
        at
        for at, one in enumerate(ran)
        if not at or one.saved or (before := ran[at - 1]).saved or before.time != one.time
    ]
    return [Stretch(plan, ran[at], ran[end - 1]) for at, end in pairwise([*begins, len(ran)])]
