"""The way back through a plan as a plan of its own, which the same compiled loops run: derivatives, and additions.

Its windows are those of the values, then those of their gradients, then those of what each type computes or has saved.
A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition of rows to an
operand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.cell.derivative import Given
from edbatch.kernels.program import TASK
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import COLUMNS, KEPT, ROWS, Columns, Rows
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.format import Plan
from edbatch.runtime.backward.gradient_arenas import GradientArenas
from edbatch.runtime.backward.loops import plan_back
from edbatch.runtime.backward.records import ADDITION, COMPUTED, RULE, SOURCE, Computed, Flow, Role, Rule
from edbatch.runtime.backward.saving import Ran
from edbatch.runtime.backward.type_rows import TypeRows
from edbatch.runtime.compile.list_program import ListProgram, derivative_of
from edbatch.runtime.state import GraphState
from edbatch.runtime.type_table import BoundType


class BackwardTables:
    """The plan of the way back, and what the compiled loops that run it read beside it.

    Args:
        ran: the forward plan.
        graph: its graph.
        gradients: of the graph's values; those that are needed are made.
        flow: where gradients flow.
        rows: per set of outputs of a type that has a derivative, what it computes.

    Attributes:
        plan: the batches. Types are numbers of `programs`: derivatives, then for each window the addition of rows of
            it.
        programs: of the types.
        memory: where the values, their gradients, and what is computed or was saved are.
        of_program: what each derivative computes.
        over_lists: per derivative that reads lists, what it computes.
    """

    def __init__(
        self, ran: Ran, graph: GraphState, gradients: GradientArenas, flow: Flow, rows: dict[int, TypeRows]
    ) -> None:
        table, arenas = graph.table, graph.arenas
        self._table = table
        columns = table.windows.columns()
        self._n_arenas, self._n_windows = len(arenas.arenas), len(columns)
        self.of_program: dict[int, TypeRows] = {}
        self._buffers: list[_Buffer] = []
        self._windows: list[Columns] = []  # of the buffers' rows
        self.over_lists: dict[int, ListRows] = {}
        self._reached = flow.operands
        derivatives, results = self._of_sets(rows, flow.present.tolist(), ran.plan)
        plan = ran.plan
        batches, operands, segments, indices = plan_back(
            (plan.batches, plan.operands, plan.segments, plan.indices, ran.nodes, ran.n_sources),
            (flow.sets, flow.parts, flow.rows),
            derivatives,
            (self._n_windows, columns["scattered"] >= 0, flow.stopped, table.backend.adds_in_groups),
            1 + max((arena.rows for arena in arenas.arenas), default=0),
        )
        programs = table.derivative_programs
        self._held = programs.prepare([*self.of_program, *self.over_lists], programs)
        additions = len(programs.tables.tasks)
        names = batches["type"]
        with_gradients = operands["window"], ADDITION - names[names <= ADDITION]
        names[:] = np.where(names < 0, additions + ADDITION - names, names)
        self.plan = Plan(batches, operands, segments, indices, ran.plan.rows)
        of_gradients = columns.copy()
        of_gradients["arena"] += self._n_arenas
        windows = np.concatenate([columns, of_gradients, np.array(self._windows, COLUMNS)])
        adds = self._additions()
        self.programs = programs.having(adds)
        of_types = np.zeros(additions + len(adds), np.int32)
        of_types[list(results)] = list(results.values())
        of_types[additions:] = range(len(adds))
        begins, kept = self._rows(arenas, gradients, np.concatenate(with_gradients)), np.zeros(len(of_types), KEPT)
        self.memory = Memory(windows, begins, of_types, kept, *table.scattered.tables(adding=True))

    def _rows(self, values: Arenas, gradients: GradientArenas, used: np.ndarray) -> np.ndarray:
        """Where the arenas of values lie, those of gradients of which a window is used, and the buffers."""
        address, arenas = self._table.backend.address, self._table.windows.columns()["arena"]
        begins = [values.addresses(), np.zeros(self._n_arenas, ROWS)]
        found = used - self._n_windows
        for arena in np.unique(arenas[found[(found >= 0) & (found < self._n_windows)]]).tolist():
            flat, width = gradients.flat(arena)
            begins[1][arena] = Rows(address(flat), flat.itemsize * width)
        begins += [np.array([Rows(address(one.flat), one.flat.itemsize * one.width)], ROWS) for one in self._buffers]
        return np.concatenate(begins)

    def _additions(self) -> np.ndarray:
        """Per window, what adds its rows."""
        of_values = [dtype for _, dtype in self._table.windows.layouts]  # of some this graph may have no arena
        of_buffers = [self._buffers[arena - 2 * self._n_arenas].flat.dtype for arena, *_ in self._windows]
        dtypes = list(dict.fromkeys(of_values + of_buffers))
        values, buffers = (np.array([dtypes.index(dtype) for dtype in of], int) for of in (of_values, of_buffers))
        values = values[self._table.windows.columns()["arena"]]
        tasks = np.array(list(map(self._table.adding_rows, dtypes)), TASK)
        return tasks[np.concatenate([values, values, buffers])]

    def _of_sets(
        self, rows: dict[int, TypeRows], present: list[int], plan: Plan
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], dict[int, int]]:
        """`Derivatives`; and per derivative the window of its rows."""
        bound, programs = self._table.bound, self._table.derivative_programs
        sets = self._table.output_sets.sets
        rules = np.zeros(len(sets), RULE)
        given: list[tuple[int, int]] = []
        computed: list[Computed] = []
        results: dict[int, int] = {}
        for number in present:
            kind = sets[number].kind
            type, program, begins = bound[kind], 0, (len(given), len(computed))
            if type.type.op.equations is not None:
                role, program = self._over_lists(type, number, plan, given, computed)
            elif number not in rows or rows[number].how.program is None:
                role = Role.NOTHING
            else:
                role, one = Role.COMPUTE, rows[number]
                how = one.how
                assert how.program is not None
                program = programs.number(how.program)
                self.of_program[program] = one
                buffer = self._buffer(one.flat, how.derivative.width)
                results[program] = self._window(buffer, 0, how.derivative.width)
                computed += [
                    Computed(-1 if place is None else self._window(buffer, place.column, place.spec.size), 0, 0)
                    for place in how.derivative.operands
                ]
                saved, of_saved = one.saved, 0
                if saved is not None:
                    of_saved = self._buffer(saved.flat, saved.how.width)
                for source, which in how.derivative.given:
                    if source is Given.SAVED:
                        assert saved is not None
                        column, spec = saved.how.places[which]
                        which = self._window(of_saved, column, spec.size)
                    given.append((int(source), which))
            rules[number] = Rule(
                role, program, type.window, begins[0], len(given), begins[1], len(computed), type.type.op.payload,
                type.type.op.singles,
            )  # fmt: skip
        return (rules, np.array(given, SOURCE), np.array(computed, COMPUTED)), results

    def _over_lists(
        self, type: BoundType, number: int, plan: Plan, given: list[tuple[int, int]], computed: list[Computed]
    ) -> tuple[Role, int]:
        """The derivative of a type that has equations; appends what it is given, and where it leaves gradients."""
        kind = self._table.output_sets.sets[number].kind
        slots = len(type.type.operands)
        needed = tuple(bool(self._reached[number] >> slot & 1) for slot in range(slots))
        if needed not in type.derivatives:
            type.derivatives[needed] = derivative_of(type.type, needed, self._table.backend)
        program, outputs = type.derivatives[needed]
        flats: list[Any] = []
        name, batches = -1, plan.batches[:0]
        if program is not None:
            name, batches = self._table.derivative_programs.number(program), plan.batches[plan.batches["type"] == kind]
            given += [(int(Given.OPERAND), slot) for slot in range(slots)]
            given += [(int(source), 0) for source in (Given.GRADIENT, Given.RESULT)[: program.given - slots]]
            self.over_lists[name] = ListRows(type, program, flats)
        for slot, output in enumerate(outputs):
            if output is None:
                computed.append(Computed(-1, 0, 0))
            elif output.given:
                computed.append(Computed(self._n_windows + type.window, 1, 1))
            else:
                rows = batches["n"] if output.of_each else plan.operands["n"][batches["operand"] + slot]
                flats.append(self._table.pool.acquire(int(rows.max()) * output.entries, type.type.out.dtype))
                window = self._window(self._buffer(flats[-1], output.entries), 0, output.entries)
                computed.append(Computed(window, int(output.of_each), 0))
        return Role.OVER_LISTS if any(outputs) else Role.NOTHING, name

    def release(self) -> None:
        """Give the buffers back that are of this alone."""
        while self.over_lists:
            _, rows = self.over_lists.popitem()
            while rows.flats:
                self._table.pool.release(rows.flats.pop())

    def _buffer(self, flat: Any, width: int) -> int:
        """The arena that a buffer with rows of this width becomes."""
        self._buffers.append(_Buffer(flat, width))
        return 2 * self._n_arenas + len(self._buffers) - 1

    def _window(self, arena: int, column: int, width: int) -> int:
        """A window of some columns of a buffer's rows."""
        itemsize = self._buffers[arena - 2 * self._n_arenas].flat.itemsize
        self._windows.append(Columns(arena, itemsize * column, itemsize * width))
        return 2 * self._n_windows + len(self._windows) - 1


class ListRows(NamedTuple):
    """What a derivative that reads lists computes.

    Attributes:
        type: of which.
        program: what computes it.
        flats: the rows of each of its outputs.
    """

    type: BoundType
    program: ListProgram
    flats: list[Any]


class _Buffer(NamedTuple):
    flat: Any
    width: int
