"""Forward runs that save what a backward run will read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.memory.plan.format import Plan
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

    def value(self, node: int, begin: int, end: int) -> Any:
        """What was saved of a node of the body, [rows, *shape], for the calls from begin to end."""
        column, spec = self.how.places[node]
        return self.rows[begin:end, column : column + spec.size].reshape(end - begin, *spec.shape)

    def release(self) -> None:
        """Give the buffer back."""
        if self.flat is not None:
            flat, self.flat, self.rows = self.flat, None, None
            self._pool.release(flat)


class SavingTable:
    """The programs of a run that saves: those of types of which something is worth saving, and of the others.

    Attributes:
        programs, kept: in the places of those that a `TypeTable` has.
        saved: per number of a type what was saved, if something is.
    """

    def __init__(self, table: TypeTable, plan: Plan) -> None:
        self._table = table
        self.count = table.count
        self.programs = table.saving_programs
        self.kept = np.zeros_like(table.kept)
        self.saved: dict[int, Saved] = {}
        kinds = plan.batches["type"]
        rows = np.bincount(kinds, plan.batches["n"], table.count).astype(np.int64).tolist()
        for kind in np.unique(kinds).tolist():
            type = table.bound[kind]
            how = saving(type, table.backend)
            if how is not None:
                self.saved[kind] = Saved(how, rows[kind], type.type.out.dtype, table.pool, self.kept[kind])

    def program(self, kind: int) -> Program | ListProgram | None:
        """What computes a type and saves, if it is compiled."""
        return self.saved[kind].how.program if kind in self.saved else self._table.program(kind)


@dataclass(frozen=True)
class Ran:
    """A plan that has run, as it is kept for going back through it.

    Args:
        plan: its batches.
        indices: its index buffer on the device.
        n_sources: how many of the batches, the first, hold sources.
        nodes: of the graph, batch after batch.
        saved: what the forward run saved, per type.
        time: when it ran, see `graph.model.writes`.
    """

    plan: Plan
    indices: Any
    n_sources: int
    nodes: np.ndarray
    saved: dict[int, Saved]
    time: int
