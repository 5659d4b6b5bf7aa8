"""The way back through a plan as a plan of its own, which the same compiled loops run: derivatives, and additions.

Its windows are those of the values, then those of their gradients, then those of what each type computes or has saved.
A batch is either the derivative of a forward batch, whose operands are what it is given, or one addition of rows to an
operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.derivative import Given
from edbatch.graph.op import Share
from edbatch.kernels.program import NONE, TASK, Task
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
        loops = table.backend.loops
        batches, operands, segments, indices = plan_back(
            ran.plan.batches, ran.plan.operands, ran.plan.segments, ran.plan.indices, ran.n_sources, ran.nodes, sets,
            parts, per_set, rules, given, computed, self.n_windows, columns["width"] > 0,
            loops.adds_in_groups, 1 + max((arena.rows for arena in arenas.arenas), default=0), stopped,
        )  # fmt: skip
        programs = table.derivative_programs
        programs.prepare(self.of_program, programs)
        self.caller = len(programs.tables.tasks)
        names = batches["type"]
        with_gradients = operands["window"], ADDITION - names[names <= ADDITION]
        names[:] = np.where(names < 0, self.caller + CALLER - names, names)
        self.plan = Plan(batches, operands, segments, indices, ran.plan.rows)
        of_gradients = columns.copy()
        of_gradients["arena"] += self._n_arenas
        windows = np.concatenate([columns, of_gradients, np.array(self._windows, COLUMNS)])
        adds = self._tasks(loops.adding)
        divides = self._tasks(loops.dividing) if self._divided else adds[:0]
        self.programs = programs.having(np.concatenate([np.array([Task(NONE)], TASK), adds, divides]))
        of_types = np.zeros(len(self.programs.tables.tasks), np.int32)
        of_types[list(results)] = list(results.values())
        of_types[self.caller + 1 :] = np.arange(len(adds) + len(divides)) % len(adds)
        address = table.backend.address
        begins = [arenas.addresses(), np.zeros(self._n_arenas, ROWS)]
        found = np.concatenate(with_gradients) - self.n_windows
        for arena in np.unique(columns["arena"][found[(found >= 0) & (found < self.n_windows)]]).tolist():
            flat, width = gradients.flat(arena)
            begins[1][arena] = Rows(address(flat), flat.itemsize * width)
        begins += [np.array([Rows(address(one.flat), one.flat.itemsize * one.width)], ROWS) for one in self._buffers]
        self.memory = Memory(windows, np.concatenate(begins), of_types, np.zeros(len(of_types), KEPT))

    def _tasks(self, of_dtype: Callable[[np.dtype], Task]) -> np.ndarray:
        """Per window, what a dtype's task is."""
        of_values = [dtype for _, dtype in self._table.windows.layouts]  # of some this graph may have no arena
        of_buffers = [self._buffers[arena - 2 * self._n_arenas].flat.dtype for arena, *_ in self._windows]
        dtypes = list(dict.fromkeys(of_values + of_buffers))
        values, buffers = (np.array([dtypes.index(dtype) for dtype in of], int) for of in (of_values, of_buffers))
        values = values[self._table.windows.columns()["arena"]]
        return np.array([of_dtype(dtype) for dtype in dtypes], TASK)[np.concatenate([values, values, buffers])]

    def source(self, window: int, gradients: GradientArenas) -> tuple[Any, int, int, int]:
        """The rows that a window shows of gradients, or of a buffer: the buffer; entries of a row, before and shown.

        Args:
            gradients: of the values.
        """
        arena, begin, width = self.memory.windows[window].tolist()
        flat, entries = (
            gradients.flat(arena - self._n_arenas)
            if arena < 2 * self._n_arenas
            else self._buffers[arena - 2 * self._n_arenas]
        )
        return flat, entries, begin // flat.itemsize, width // flat.itemsize

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
                    self._divided.append(self._table.pool.acquire(most * size, type.type.out.dtype))
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
        if not isinstance(rule, Share) or rule.weight is not None:
            return None
        return rule if not rule.divided or self._table.backend.loops.dividing(type.type.out.dtype) else None

    def _buffer(self, flat: Any, width: int) -> int:
        """The arena that a buffer with rows of this width becomes."""
        self._buffers.append(_Buffer(flat, width))
        return 2 * self._n_arenas + len(self._buffers) - 1

    def _window(self, arena: int, column: int, width: int) -> int:
        """A window of some columns of a buffer's rows."""
        itemsize = self._buffers[arena - 2 * self._n_arenas].flat.itemsize
        self._windows.append(Columns(arena, itemsize * column, itemsize * width))
        return 2 * self.n_windows + len(self._windows) - 1


class _Buffer(NamedTuple):
    flat: Any
    width: int
