"""The way back through a plan as a plan of its own, which the same compiled loops run: derivatives, and additions.

Its windows are those of the values, then those of their gradients, then those of what each type computes or has saved.
A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition of rows to an
operand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.derivative import Given
from edbatch.graph.op import Share
from edbatch.kernels.program import ADD_ROWS, DIVIDE, NONE
from edbatch.kernels.tables import Memory
from edbatch.memory.addresses import COLUMNS, KEPT, ROWS, Columns, Rows
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Plan
from edbatch.runtime.backward_loops import plan_back
from edbatch.runtime.backward_records import ADDITION, CALLER, RULE, SOURCE, Role, Rule
from edbatch.runtime.operand_rows import GradientArenas
from edbatch.runtime.ran import Ran
from edbatch.runtime.type_rows import TypeRows
from edbatch.runtime.type_table import BoundType, TypeTable

_FLOAT32 = np.dtype(np.float32)


class BackwardTables:
    """The plan of the way back, and what the compiled loops that run it read beside it.

    Args:
        ran: the forward plan.
        arenas, gradients: of the values; those of the latter that are needed are made.
        table: the graph's types.
        rows: per set of outputs of a type that has a derivative, what it computes.
        sets, parts, per_set: from `runtime.reach`.
        stopped: per window of values, whether no gradient flows to what is read through it.

    Attributes:
        plan: the batches. Types are numbers of `programs`: derivatives, then `caller`, then for each window the
            addition of rows of it; and, where there are means of lists, for each window the division of rows into it.
        programs: of the types.
        memory: where the values, their gradients, and what is computed or was saved are.
        n_windows: of values.
        caller: the type of batches that are left to the caller; their first row is the forward batch's number.
        of_program: what each derivative computes.
    """

    def __init__(
        self, ran: Ran, arenas: Arenas, gradients: GradientArenas, table: TypeTable, rows: dict[int, TypeRows],
        sets: np.ndarray, parts: np.ndarray, per_set: np.ndarray, stopped: np.ndarray,
    ) -> None:  # fmt: skip
        self._table = table
        columns = table.windows.columns()
        self._n_arenas, self.n_windows = len(arenas.arenas), len(columns)
        self.of_program: dict[int, TypeRows] = {}
        self._buffers: list[_Buffer] = []
        self._windows: list[Columns] = []  # of the buffers' rows
        self._divided: list[Any] = []  # of the buffers those that are made here
        rules, given, computed, results = self._of_sets(rows, np.flatnonzero(per_set).tolist(), ran.plan.batches)
        float32 = np.array([dtype == _FLOAT32 for _, dtype in table.windows.layouts], np.bool_)[columns["arena"]]
        batches, operands, segments, indices = plan_back(
            ran.plan.batches, ran.plan.operands, ran.plan.segments, ran.plan.indices, ran.n_sources, ran.nodes, sets,
            parts, per_set, rules, given, computed, self.n_windows, float32 & (columns["width"] > 0),
            table.backend.loops.adds_in_groups, 1 + max((arena.rows for arena in arenas.arenas), default=0), stopped,
        )  # fmt: skip
        programs = table.derivative_programs
        programs.prepare(self.of_program, programs)
        self.caller = len(programs.tables.program_of)
        names = batches["type"]
        with_gradients = operands["window"], ADDITION - names[names <= ADDITION]
        names[:] = np.where(names < 0, self.caller + CALLER - names, names)
        self.plan = Plan(batches, operands, segments, indices, ran.plan.rows)
        of_buffers = [self._buffers[arena - 2 * self._n_arenas].flat.dtype == _FLOAT32 for arena, *_ in self._windows]
        adds = np.where(np.concatenate([float32, float32, np.array(of_buffers, np.bool_)]), ADD_ROWS, NONE)
        divides = np.full(len(adds) if self._divided else 0, DIVIDE)
        self.programs = programs.having(np.concatenate([programs.tables.program_of, [NONE], adds, divides]))
        of_types = np.zeros(len(self.programs.tables.program_of), np.int32)
        of_types[list(results)] = list(results.values())
        of_types[self.caller + 1 :] = np.arange(len(adds) + len(divides)) % len(adds)
        of_gradients = columns.copy()
        of_gradients["arena"] += self._n_arenas
        windows = np.concatenate([columns, of_gradients, np.array(self._windows, COLUMNS)])
        address = table.backend.address
        begins = [arenas.addresses(), np.zeros(self._n_arenas, ROWS)]
        found = np.concatenate(with_gradients) - self.n_windows
        for arena in np.unique(columns["arena"][found[(found >= 0) & (found < self.n_windows)]]).tolist():
            flat, width = gradients.flat(arena)
            begins[1][arena] = Rows(address(flat), width)
        begins += [np.array([Rows(address(one.flat), one.width)], ROWS) for one in self._buffers]
        self.memory = Memory(windows, np.concatenate(begins), of_types, np.zeros(len(of_types), KEPT))

    def source(self, window: int, gradients: GradientArenas) -> tuple[Any, int, int, int]:
        """The rows that a window shows of gradients, or of a buffer: the buffer, column, entries of a row and as seen.

        Args:
            gradients: of the values.
        """
        arena, column, width = self.memory.windows[window].tolist()
        if arena < 2 * self._n_arenas:
            return (*gradients.flat(arena - self._n_arenas), column, width)
        found = self._buffers[arena - 2 * self._n_arenas]
        return found.flat, found.width, column, width

    def _of_sets(
        self, rows: dict[int, TypeRows], present: list[int], batches: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, int]]:
        """`rules`, `given`, `computed` as `plan_back` reads them; and per derivative the window of its rows."""
        bound, programs = self._table.bound, self._table.derivative_programs
        sets = self._table.output_sets.sets
        rules = np.zeros(len(sets), RULE)
        given: list[tuple[int, int]] = []
        computed: list[int] = []
        results: dict[int, int] = {}
        divided: list[int] = []
        for number in present:
            kind = sets[number].kind
            type, program, begins = bound[kind], CALLER, (len(given), len(computed))
            if type.type.op.variadic:
                share = self._share(type)
                role = Role.LISTS if share is None else Role.SHARE
                if share is not None and share.divided:
                    divided.append(number)
                    most, size = int(batches["n"][batches["type"] == kind].max()), type.type.out.size
                    self._divided.append(self._table.pool.acquire(most * size, _FLOAT32))
                    computed.append(self._window(self._buffer(self._divided[-1], size), 0, size))
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
                    -1 if place is None else self._window(buffer, place.column, place.spec.size)
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
                role, program, type.window, begins[0], len(given), begins[1], len(computed), type.type.op.payload
            )
        for number in divided:
            # The division of rows into a window comes after the additions of rows of all windows.
            window = 2 * self.n_windows + len(self._windows) + computed[rules[number]["computed"]]
            rules[number]["type"] = ADDITION - window
        return rules, np.array(given, SOURCE), np.array(computed, np.int64), results

    def release(self) -> None:
        """Give the buffers back that are of this alone."""
        while self._divided:
            self._table.pool.release(self._divided.pop())

    def _share(self, type: BoundType) -> Share | None:
        """How each element of a list gets what flows to the result, where compiled loops do it: all, or a part."""
        rule = type.type.op.gradient
        if not isinstance(rule, Share) or rule.weight is not None or type.type.out.dtype != _FLOAT32:
            return None
        return rule if self._table.backend.loops.divides or not rule.divided else None

    def _buffer(self, flat: Any, width: int) -> int:
        """The arena that a buffer with rows of this width becomes."""
        self._buffers.append(_Buffer(flat, width))
        return 2 * self._n_arenas + len(self._buffers) - 1

    def _window(self, arena: int, column: int, width: int) -> int:
        """A window of some columns of a buffer's rows."""
        self._windows.append(Columns(arena, column, width))
        return 2 * self.n_windows + len(self._windows) - 1


class _Buffer(NamedTuple):
    flat: Any
    width: int
