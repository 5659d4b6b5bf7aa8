"""The programs of a type table side by side, as the interpreter reads them when it runs whole mini-batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from edbatch.base.records import records, words_of
from edbatch.compiling.array_table import ArrayTable, HasTables
from edbatch.compiling.compiled import compiled
from edbatch.graph.spec import ParameterSpec
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
from edbatch.memory.plan.growing import GrowingTables
from edbatch.runtime.compile.derivatives import saving
from edbatch.runtime.compile.program import Program
from edbatch.runtime.compile.tables import Tables, arrays_of

if TYPE_CHECKING:
    from edbatch.runtime.type_table import TypeTable

_versions = itertools.count()


class Joined(GrowingTables):
    """The tables of `Programs`, with room for more."""

    dtypes = DISPATCH, PROGRAM_RANGE, SLOT, ARGUMENT_OF, STEP, POSITION, np.dtype(np.int64), np.dtype(np.int64)

    def __init__(self) -> None:
        self.counts = np.zeros(len(self.dtypes), np.int64)
        super().__init__()

    def _in_use(self) -> Sequence[int]:
        return self.counts.tolist()

    def append(self, first: int, more: Sequence[Sequence[np.ndarray]]) -> None:
        """Append arrays to each of the tables from the first on."""
        counts = self.counts.copy()
        counts[first : first + len(more)] += [sum(map(len, some)) for some in more]
        if any(n > len(table) for n, table in zip(counts, self._tables, strict=True)):
            self.make_room((2 * counts).tolist())
        begins = self._in_use()[first:]
        for table, begin, some in zip(self._tables[first:], begins, more, strict=False):
            new = np.frombuffer(b"".join([one.tobytes() for one in some]), table.dtype)
            words_of(table)[begin : begin + len(new)] = words_of(new)  # NumPy would compare fields first
        self.counts = counts  # last: an interrupt may come at any time

    @property
    def tables(self) -> Programs:
        """Those in use."""
        return Programs(*(table[:n] for table, n in zip(self._tables, self._in_use(), strict=True)))


# Where a range says where the parts of a program begin and, of the first three, end; and what else there is.
_PARTS = Programs._fields[2:]
_BEGINS = [ProgramRange._fields.index(name) for name in _PARTS]
_ENDS = [ProgramRange._fields.index(f"{name}_end") for name in _PARTS[:3]]
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
    scratch: int = 0

    def held(self, programs: ProgramTable) -> list[Any] | None:
        """See `ProgramTable.prepare`; None: that is to be called, programs or parameters are not where they were."""
        return arrays_of(self.parameters) if programs.version == self.version else None


# Programs that have been joined and are no longer read: so many, and as many as are read, before all are joined anew.
MOST_GONE = 64
MOST_SETS = 1000  # of types that are remembered to have run


class ProgramTable:
    """Programs of types.

    Args:
        table: of the types.
        saves: whether what saves values on the way computes them.

    Attributes:
        directory: of the tables, as compiled loops read them.
        version: another one whenever these change.
    """

    directory: ArrayTable[Programs]
    version: int

    def __init__(self, table: TypeTable, saves: bool) -> None:
        self._table, self._saves = table, saves
        self._joined: dict[int, Tables] = {}  # that compiled loops read
        self._prepared: dict[frozenset[int], Ready] = {}  # sets of types that have run at this version
        self._tables = Joined()
        self._publish()

    def prepare(self, kinds: Iterable[int], plan: HasTables[Plan], first: int, stop: int) -> tuple[Ready, list[Any]]:
        """Have the programs of these types ready for some batches of a plan.

        Returns:
            What finds them when the same batches come again; and arrays of parameters, to be held while the programs
            run: another thread may let go of a model.

        Raises:
            EdBatchError: a parameter is gone.
        """
        prepared = frozenset(kinds)
        ready = self._prepared.get(prepared)
        if ready is None or (held := ready.held(self)) is None:
            ready, held = self._prepare(prepared)
        return ready._replace(scratch=_scratch(first, stop, plan.entries, self.directory.entries)), held

    def _prepare(self, prepared: frozenset[int]) -> tuple[Ready, list[Any]]:
        held, new = list[Any](), dict[int, Tables]()
        for kind in prepared:
            bound = self._table.bound[kind]
            how = saving(bound) if self._saves else None
            program: Program | None = bound.program() if how is None else how.program
            if program is None:
                continue
            tables = program.tables()
            while (arrays := tables.held()) is None:
                tables = program.tables()
            held += arrays
            if self._joined.get(kind) is not tables:
                new[kind] = tables
        if new or len(self.directory.tables.tasks) < self._table.count:
            self._join(new)
        if len(self._prepared) >= MOST_SETS:
            self._prepared.clear()
        found = [self._joined[kind] for kind in prepared if kind in self._joined]
        parameters = {spec: known for one in found for spec, known in one.fixed.parameters}
        ready = self._prepared[prepared] = Ready(self.version, tuple(parameters.items()))
        return ready, held

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether compiled loops run each of these batches in one piece, and call nothing of Python."""
        tables = self.directory.tables
        programs = tables.tasks["program"][batches["type"]]
        is_own = programs >= 0
        n, calls = batches["n"][is_own], tables.extents["calls"][programs[is_own]]
        return bool(((n <= calls) & (calls < ONE_BLOCK)).all())

    def _join(self, new: dict[int, Tables]) -> None:
        """Append the tables of programs that are new, or have others than before."""
        if self._tables.counts[1] + len(new) > MOST_GONE + 2 * len(self._joined | new):  # most are of what is gone
            new, self._joined = self._joined | new, {}
            self._tables = Joined()
        added = self._table.bound[self._tables.counts.item(0) :]
        self._tables.append(0, [[records([bound.dispatch for bound in added], DISPATCH)]])
        if new:
            self._append([*new], [*new.values()])
        self._publish()
        self._joined |= new  # last: an interrupt may come at any time

    def _append(self, kinds: Sequence[int], new: Sequence[Tables]) -> None:
        """Append the tables of some types."""
        parts = [
            (one.slots, one.arguments, one.steps, one.places, one.fixed.kernels, one.fixed.addresses) for one in new
        ]
        counts = np.array([[len(part) for part in of] for of in parts])
        ends = np.cumsum(counts, axis=0) + self._tables.counts[2:]
        extents = np.empty((len(new), len(ProgramRange._fields)), np.int64)
        extents[:, _BEGINS], extents[:, _ENDS] = ends - counts, ends[:, : len(_ENDS)]
        extents[:, _OTHERS] = [one.range_fields(self._table.backend) for one in new]
        first = self._tables.counts.item(1)
        self._tables.append(1, [[extents], *zip(*parts, strict=True)])
        words_of(self._tables.tables.tasks)[kinds, _PROGRAM] = np.arange(first, first + len(new))

    def _publish(self) -> None:
        """Let compiled loops read what has been joined."""
        self._prepared.clear()
        self.version = next(_versions)  # first: who knows the tables of a version reads no others, after an interrupt
        self.directory = ArrayTable(self._tables.tables)


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
