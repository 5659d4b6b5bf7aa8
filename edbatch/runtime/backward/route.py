"""How gradients go back through some sets of outputs: what is the same in every mini-batch that has these sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.records import records, words_of
from edbatch.compiling.directory import Directory
from edbatch.graph.cell.derivative import Given
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import COLUMNS, KEPT, ROWS, Columns
from edbatch.runtime.backward.records import (
    BUFFER,
    COMPUTE,
    COMPUTED,
    NODES,
    NOTHING,
    OVER_LISTS,
    OWN,
    RULE,
    SAVED,
    SOURCE,
    Buffer,
    Computed,
    RouteTables,
    Rule,
)
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative, compiled
from edbatch.runtime.compile.list_program import ListDerivative, derivative_of
from edbatch.runtime.type_columns import BoundType
from edbatch.runtime.type_table import TypeTable

if TYPE_CHECKING:
    from edbatch.runtime.backward.routes import StaticWindows

_NOWHERE = Computed(-1, 0, 0)


class Route:
    """By which rules gradients flow, and in which windows everything is, but for where that lies.

    Windows are those of the values, then those of their gradients, then those of the buffers. Types are numbers of
    programs: derivatives; then what adds rows, one for each dtype.

    Args:
        operands: per set that there is, to which operands gradients flow, a bit each.
        saved: what the forward run has saved, per type.

    Attributes:
        hows, own: per set of a type that has a derivative of its own, which, and its buffer.
        buffers, columns: all of them, and their windows.
        tables: directory of `RouteTables`.
        terms: the sets whose derivatives leave something for parameters; reads: the parameters whose values are needed.
        kinds: per program of the table, the set.
        of_types: per type, the number of the set that it computes; -1: none.
        programs: of the types.
        memory: where everything is; the arenas are filled in; words: the fields of these.
        has_parameters: whether some nodes are parameters.
        calls: whether functions of the user's are called, which may go back by the same route.
    """

    def __init__(
        self, table: TypeTable, windows: StaticWindows, operands: Mapping[int, int], saved: Mapping[int, Saved]
    ) -> None:
        self._table, self.windows, self._operands, self._saved = table, windows, operands, saved
        self.hows: dict[int, CompiledDerivative] = {}
        self.own: dict[int, int] = {}
        self.buffers: list[Buffer] = []
        self._columns: list[Columns] = []
        self._given: list[tuple[int, int]] = []
        self._computed: list[Computed] = []
        self._windows_of: dict[int, int] = {}  # per set, the window of what is computed of it
        self.programs = programs = table.derivative_programs
        dtypes = dict.fromkeys(self._type(number).type.out.dtype for number in operands)
        self._adding = {dtype: programs.number(table.adding_rows(dtype)) for dtype in dtypes}
        self.kinds: dict[int, int] = {}  # per program of the table, the set
        rules = {number: self._rule(number) for number in operands}
        self._rules = np.zeros((1 + max(operands), len(Rule._fields)), np.int64)
        self._rules[list(rules)] = list(rules.values())
        self.of_types = np.full(1 + max([*self.kinds, *self._adding.values()]), -1, np.int64)
        self._results = np.zeros(len(self.of_types), np.int32)
        for kind, number in self.kinds.items():
            self.of_types[kind], self._results[kind] = number, self._windows_of.get(number, 0)
        self.columns = records(self._columns, COLUMNS)
        self._arenas = np.zeros(2 * windows.n_arenas + len(self.buffers), ROWS)
        self.words = words_of(self._arenas)
        self.tables = Directory(
            RouteTables(
                np.frombuffer(self._rules, RULE), records(self._given, SOURCE), records(self._computed, COMPUTED),
                windows.scattered, windows.stopped, windows.arenas, self._arenas,
                records(self.buffers, BUFFER), np.full(windows.n_arenas + len(self.buffers), -1, np.int64),
            )
        )  # fmt: skip
        self.terms = [number for number, how in self.hows.items() if how.terms]
        self.reads = frozenset().union(*(how.reads for how in self.hows.values()))
        self.has_parameters = any(self._type(number).type.op is PARAMETER for number in operands)
        self.calls = any(self._type(number).type.calls for number in operands)
        self.memory = self._placed(table.scattered.tables(adding=True))

    def prepare(self) -> list[Any]:
        """Have the programs ready; returns what is to be held while they run."""
        held = self.programs.prepare((*self.kinds, *self._adding.values()), self.programs)
        self.windows.fill(self.columns)
        scattered, known = self._table.scattered.tables(adding=True), self.memory.tables
        if scattered[1] is not known.words or self.windows.columns is not known.windows:
            self.memory = self._placed(scattered)
        return held

    def _placed(self, scattered: tuple[np.ndarray, np.ndarray]) -> Directory[Memory]:
        kept = np.zeros(len(self.of_types), KEPT)
        return Directory(Memory(self.windows.columns, self._arenas, self._results, kept, *scattered))

    def _type(self, number: int) -> BoundType:
        return self._table.bound[self._table.output_sets.sets[number].kind]

    def _rule(self, number: int) -> Rule:
        type, begins, program = self._type(number), (len(self._given), len(self._computed)), 0
        if type.type.op.equations is not None:
            role, program = self._over_lists(type, number)
        elif self._table.is_source[self._table.output_sets.sets[number].kind]:
            role = NOTHING
        else:
            role, program = self._of_nodes(type, number)
        return Rule(
            role, program, type.window, begins[0], len(self._given), begins[1], len(self._computed),
            type.type.op.payload, type.type.op.singles, self._adding[type.type.out.dtype],
        )  # fmt: skip

    def _of_nodes(self, type: BoundType, number: int) -> tuple[int, int]:
        """A derivative of every node by itself."""
        table, bits = self._table, self._operands[number]
        kind, live = table.output_sets.sets[number]
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = table.output_sets.needed(number, [bool(bits >> min(slot, 62) & 1) for slot in range(slots)])
        how = self.hows[number] = compiled(type, needed, kind in self._saved, live, table.backend)
        if how.program is None:
            return NOTHING, 0
        own = self._buffer(Buffer(number, kind, how.width, OWN))
        self.own[number] = len(self.buffers) - 1
        self._windows_of[number] = self._window(own, 0, how.width, type)
        self._computed += [
            _NOWHERE if place is None else Computed(self._window(own, place.column, place.spec.size, type), 0, 0)
            for place in how.operands
        ]
        saved = self._saved[kind].how if kind in self._saved else None
        of_saved = self._buffer(Buffer(number, kind, saved.width, SAVED)) if saved is not None else -1
        for source, which in how.given:
            if source is Given.SAVED:
                assert saved is not None
                column, spec = saved.places[which]
                which = self._window(of_saved, column, spec.size, type)
            self._given.append((int(source), which))
        program = table.derivative_programs.number(how.program)
        self.kinds[program] = number
        return COMPUTE, program

    def _over_lists(self, type: BoundType, number: int) -> tuple[int, int]:
        """The derivative of a type that has equations."""
        kind, slots = self._table.output_sets.sets[number].kind, len(type.type.operands)
        needed = tuple(bool(self._operands[number] >> slot & 1) for slot in range(slots))
        if needed not in type.derivatives:
            type.derivatives[needed] = derivative_of(type.type, needed, self._table.backend)
        found: ListDerivative = type.derivatives[needed]
        program, name = found.program, -1
        if program is not None:
            self._given += [(int(Given.OPERAND), slot) for slot in range(slots)]
            self._given += [(int(source), 0) for source in (Given.GRADIENT, Given.RESULT)[: program.given - slots]]
            name = self._table.derivative_programs.number(program)
            self.kinds[name] = number
        for slot, output in enumerate(found.outputs):
            if output is None:
                self._computed.append(_NOWHERE)
            elif output.given:
                self._computed.append(Computed(self.windows.n_windows + type.window, 1, 1))
            else:
                buffer = Buffer(number, kind, output.entries, NODES if output.of_each else slot)
                window = self._window(self._buffer(buffer), 0, output.entries, type)
                self._computed.append(Computed(window, int(output.of_each), 0))
        return OVER_LISTS if any(found.outputs) else NOTHING, name

    def _buffer(self, buffer: Buffer) -> int:
        """The arena that it becomes."""
        self.buffers.append(buffer)
        return 2 * self.windows.n_arenas + len(self.buffers) - 1

    def _window(self, arena: int, column: int, width: int, type: BoundType) -> int:
        """A window of some columns of a buffer's rows."""
        itemsize = type.type.out.dtype.itemsize
        self._columns.append(Columns(arena, itemsize * column, itemsize * width))
        return 2 * self.windows.n_windows + len(self._columns) - 1
