"""The programs of a type table side by side, as the interpreter reads them when it runs whole mini-batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from edbatch.base.records import records, words_of
from edbatch.compiling.array_table import ArrayTable, HasTables
from edbatch.compiling.compiled import compiled
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend
from edbatch.kernels.program import (
    ARGUMENT_OF,
    DISPATCH,
    ONE_BLOCK,
    POSITION,
    PROGRAM_RANGE,
    SLOT,
    STEP,
    Dispatch,
    ProgramRange,
)
from edbatch.kernels.tables import Programs, plan_in, programs_in
from edbatch.memory.plan.format import Plan
from edbatch.runtime.compile.growing_table import GrowingTable
from edbatch.runtime.compile.program import Program
from edbatch.runtime.compile.tables import Tables, arrays_of

_versions = itertools.count()
_PARTS = {
    "slots": SLOT,
    "arguments": ARGUMENT_OF,
    "steps": STEP,
    "places": POSITION,
    "kernels": np.dtype(np.int64),
    "addresses": np.dtype(np.int64),
}
# Where an extent says where its parts begin and, of the first, end; and what else there is.
_BEGINS = [ProgramRange._fields.index(name) for name in _PARTS]
_ENDS = [ProgramRange._fields.index(f"{name}_end") for name in ("slots", "arguments", "steps")]
_OTHERS = [ProgramRange._fields.index(name) for name in ("calls", "itemsize", "width", "element_width", "lists")]


_PROGRAM = Dispatch._fields.index("program")


class Ready(NamedTuple):
    """Programs that have run some batches, which come again.

    Attributes:
        version: of all programs.
        parameters: that they read, see `Tables`.
        scratch: bytes that the largest of the batches needs.
    """

    version: int
    parameters: tuple[tuple[ParameterSpec, ref[Any]], ...]
    scratch: int

    def held(self, programs: ProgramTable) -> list[Any] | None:
        """See `ProgramTable.prepare`; None: that is to be called, programs or parameters are not where they were."""
        return arrays_of(self.parameters) if programs.version == self.version else None


# Programs that have been joined and are no longer read: so many, and as many as are read, before all are joined anew.
MOST_GONE = 64
MOST_SETS = 1000  # of types that are remembered to have run


class ProgramTable:
    """Programs of types.

    Args:
        program: what computes a type, by its number, if it is compiled.
        backend: of the device.

    Attributes:
        directory: of the tables, as compiled loops read them.
        version: another one whenever these change.
    """

    directory: ArrayTable[Programs]
    version: int

    def __init__(self, program: Callable[[int], Program | None], backend: Backend) -> None:
        self._program, self._backend = program, backend
        self._programs: dict[int, Program | None] = {}  # of types that have run
        self._joined: dict[int, Tables] = {}  # that compiled loops read
        self._prepared: dict[frozenset[int], Ready] = {}  # sets of types that have run at this version
        self._begin()
        self._publish()

    def prepare(self, kinds: Iterable[int], table: Any) -> list[Any]:
        """Have the programs of these types, of a table with `count` and `task`, ready.

        Returns:
            Arrays of parameters, to be held while the programs run: another thread may let go of a model.

        Raises:
            EdBatchError: a parameter is gone.
        """
        prepared = frozenset(kinds)
        before = self._prepared.get(prepared)
        if before is not None and (still := before.held(self)) is not None:
            return still
        held, new = list[Any](), dict[int, Tables]()
        for kind in prepared:
            if kind not in self._programs:
                self._programs[kind] = self._program(kind)
            program = self._programs[kind]
            if program is None:
                continue
            tables = program.tables()
            while (arrays := tables.held()) is None:
                tables = program.tables()
            held += arrays
            if self._joined.get(kind) is not tables:
                new[kind] = tables
        if new or len(self._tasks) < table.count:
            self._join(new, table)
        if len(self._prepared) >= MOST_SETS:
            self._prepared.clear()
        self._prepared[prepared] = self.ready(prepared, 0)
        return held

    def ready(self, kinds: Iterable[int], scratch: int) -> Ready:
        """Programs of these types, which have been prepared, to be run again; `scratch`: bytes that they need then."""
        found = [tables for kind in kinds if (tables := self._joined.get(kind)) is not None]
        parameters = {spec: known for tables in found for spec, known in tables.fixed.parameters}
        return Ready(self.version, tuple(parameters.items()), scratch)

    def scratch(self, plan: HasTables[Plan], first: int, stop: int) -> int:
        """Bytes of scratch that the largest of some batches of a plan needs."""
        return _scratch(first, stop, plan.entries, self.directory.entries)

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether compiled loops run each of these batches in one piece, and call nothing of Python."""
        tables = self.directory.tables
        programs = tables.tasks["program"][batches["type"]]
        is_own = programs >= 0
        n, calls = batches["n"][is_own], tables.extents["calls"][programs[is_own]]
        return bool(((n <= calls) & (calls < ONE_BLOCK)).all())

    def _begin(self) -> None:
        """Have none joined."""
        self._parts = {part: GrowingTable(dtype) for part, dtype in _PARTS.items()}
        self._extents, self._tasks = GrowingTable(PROGRAM_RANGE), GrowingTable(DISPATCH)

    def _join(self, new: dict[int, Tables], table: Any) -> None:
        """Append the tables of programs that are new, or have others than before."""
        if len(self._extents) + len(new) > MOST_GONE + 2 * len(self._joined | new):  # most are of what is gone
            new, self._joined = self._joined | new, {}
            self._begin()
        self._tasks.append([records([table.task(kind) for kind in range(len(self._tasks), table.count)], DISPATCH)])
        if new:
            self._append([*new], [*new.values()])
        self._publish()
        self._joined |= new  # last: an interrupt may come at any time

    def _append(self, kinds: Sequence[int], new: Sequence[Tables]) -> None:
        """Append the tables of some types."""
        first = len(self._extents)
        parts = [
            (one.slots, one.arguments, one.steps, one.places, one.fixed.kernels, one.fixed.addresses) for one in new
        ]
        counts = np.array([[len(part) for part in of] for of in parts])
        ends = np.cumsum(counts, axis=0) + [len(table) for table in self._parts.values()]
        extents = np.empty((len(new), len(ProgramRange._fields)), np.int64)
        extents[:, _BEGINS], extents[:, _ENDS] = ends - counts, ends[:, : len(_ENDS)]
        extents[:, _OTHERS] = [one.range_fields(self._backend) for one in new]
        for table, more in zip(self._parts.values(), zip(*parts, strict=True), strict=True):
            table.append(more)
        self._extents.append([extents])
        words_of(self._tasks.entries)[kinds, _PROGRAM] = np.arange(first, first + len(new))

    def _publish(self) -> None:
        """Let compiled loops read what has been joined."""
        parts = {part: table.entries for part, table in self._parts.items()}
        self._prepared.clear()
        self.version = next(_versions)  # first: who knows the tables of a version reads no others, after an interrupt
        self.directory = ArrayTable(Programs(self._tasks.entries, self._extents.entries, **parts))


@compiled(small=True)
def _scratch(first: int, stop: int, plan_tables: np.ndarray, program_tables: np.ndarray) -> int:
    plan, programs, most = plan_in(plan_tables), programs_in(program_tables), 1
    for at in range(first, stop):
        batch = plan.batches[at]
        number = programs.tasks[batch["type"]]["program"]
        if number >= 0:
            extent = programs.extents[number]
            size = extent["width"] * min(batch["n"], extent["calls"])
            if extent["lists"] >= 0:
                size += extent["element_width"] * plan.operands[batch["operand"] + extent["lists"]]["n"]
            most = max(most, size)
    return most
