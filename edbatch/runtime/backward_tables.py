"""The way back through a plan as a plan of its own, which the same compiled loops run: derivatives, and additions.

Its arenas are those of the values, then those of their gradients, then what each type computes or has saved. A batch is
either the derivative of a forward batch, whose operands are what it is given, or one addition of rows to an operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.graph.derivative import Given
from edbatch.kernels.program import ADD_ROWS, NONE
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Access, Plan
from edbatch.runtime.operand_rows import GradientArenas
from edbatch.runtime.program_table import ProgramTable
from edbatch.runtime.ran import Ran
from edbatch.runtime.type_table import BoundType, TypeTable

if TYPE_CHECKING:
    from edbatch.runtime.backward_plan import TypeRows

_SLICE, _SHARED, _GATHER, _GATHER_MANY = map(int, (Access.SLICE, Access.SHARED, Access.GATHER, Access.GATHER_MANY))


class BackwardTables:
    """Collects batches, and has them run.

    Args:
        ran: the forward plan.
        arenas, gradients: of the values.
        table: the graph's types.
    """

    def __init__(self, ran: Ran, arenas: Arenas, gradients: GradientArenas, table: TypeTable) -> None:
        self._ran = ran
        self._gradients = gradients
        self._table = table
        columns = table.windows.columns()
        self._contiguous = (columns[:, 2] > 0).tolist()
        self._arena_of = columns[:, 0].tolist()
        self._n_arenas, self._n_windows = len(arenas.arenas), len(columns)
        of_gradients = columns.copy()
        of_gradients[:, 0] += self._n_arenas
        self._columns = [columns, of_gradients]
        self._addresses = [arenas.addresses(), np.zeros((self._n_arenas, 2), np.int64)]
        self._segments = ran.plan.segments.tolist()
        self._more_arenas: list[tuple[int, int]] = []
        self._more_windows: list[tuple[int, int, int]] = []
        self._windows_of: dict[Any, int] = {}
        self._lists: list[np.ndarray] = []
        self._listed = len(ran.plan.indices)
        self._batches: list[tuple[int, ...]] = []
        self._operands: list[Any] = []
        self._rows_of: dict[int, TypeRows] = {}
        self._programs = table.derivative_programs
        self._kinds: list[int] = []  # per batch: a derivative, NONE, or ADD_ROWS - the window that it is of

    def can_read(self, operand: list[int]) -> bool:
        """Whether compiled loops reach an operand's rows."""
        if operand[0] != _GATHER_MANY:
            return self._contiguous[operand[1]]
        return all(self._contiguous[segment[0]] for segment in self._segments[operand[2] : operand[2] + operand[3]])

    def compute(self, rows: TypeRows, batch: list[int], begin: int, saved_begin: int, operands: list[Any]) -> None:
        """A derivative of a whole batch, and the additions to its operands.

        Args:
            begin: of its rows in `rows.flat`.
            saved_begin: of its rows in what was saved.
            operands: of the forward batch.
        """
        _, row, n, _, payload, _ = batch
        plain, how = rows.type.window, rows.how
        given: list[Any] = []
        for source, number in how.derivative.given:
            if source is Given.OPERAND:
                given.append(operands[number])
            elif source is Given.RESULT:
                given.append((_SLICE, plain, row, 1, n))
            elif source is Given.SAVED:
                assert rows.saved is not None
                column, spec = rows.saved.how.places[number]
                given.append((_SLICE, self._saved(rows, column, spec.size), saved_begin, 1, n))
            else:
                self._touch(plain)
                given.append((_SLICE, self._n_windows + plain, row, 1, n))
        assert how.program is not None
        kind = self._programs.number(how.program)
        self._windows_of.setdefault(kind, self._computed(rows, 0, how.derivative.width))
        self._kinds.append(kind)
        self._rows_of[len(self._batches)] = rows
        self._batches.append((kind, begin, n, len(self._operands), payload, -1))
        self._operands += given
        for slot, place in enumerate(how.derivative.operands):
            if place is not None:
                self._add(operands[slot], self._computed(rows, place.column, place.spec.size), begin, n, None)

    def share(self, window: int, batch: list[int], operand: list[int]) -> None:
        """The way back through a batch of sums over lists: each operand gets the gradient of its sum."""
        _, row, n, _, _, offsets = batch
        lengths = np.diff(self._ran.plan.indices[offsets : offsets + n + 1])
        self._touch(window)
        self._add(operand, self._n_windows + window, row, operand[4], np.repeat(np.arange(n, dtype=np.int32), lengths))

    def leave(self) -> None:
        """A batch that is left to the caller."""
        self._kinds.append(NONE)
        self._batches.append((0, 0, 0, 0, 0, 0))

    def plan(self) -> Plan:
        """All batches."""
        self._programs.prepare({kind for kind in self._kinds if kind >= 0}, self._programs)
        first = len(self._programs.program_of)
        windows = dict.fromkeys(kind for kind in self._kinds if kind <= ADD_ROWS)
        number = {NONE: first} | {kind: first + 1 + at for at, kind in enumerate(windows)}
        batches = np.array(self._batches, np.int32).reshape(-1, 6)
        batches[:, 0] = [number.get(kind, kind) for kind in self._kinds]
        indices = self._ran.plan.indices
        if self._lists:
            indices = np.concatenate([indices, *self._lists]).astype(np.int32, copy=False)
        operands = np.array(self._operands, np.int32).reshape(-1, 5)
        self.program_of = np.append(self._programs.program_of, [NONE] + [ADD_ROWS] * len(windows))
        self.results = np.zeros(len(self.program_of), np.int32)
        for kind, window in self._windows_of.items():
            if isinstance(kind, int):
                self.results[kind] = window
        self.results[first + 1 :] = [ADD_ROWS - kind for kind in windows]
        return Plan(batches, operands, self._ran.plan.segments, indices, self._ran.plan.rows)

    def computed(self, number: int) -> tuple[Any, BoundType] | None:
        """What a batch has computed, and of which type it is the derivative; None if it only adds."""
        rows = self._rows_of.get(number)
        if rows is None:
            return None
        _, begin, n, *_ = self._batches[number]
        width = rows.how.derivative.width
        return rows.flat[begin * width : (begin + n) * width].reshape(n, width), rows.type

    def windows(self) -> np.ndarray:
        """As `Windows.columns`, of all windows."""
        return np.concatenate([*self._columns, np.array(self._more_windows, np.int64).reshape(-1, 3)])

    def addresses(self) -> np.ndarray:
        """As `Arenas.addresses`, of all arenas."""
        return np.concatenate([*self._addresses, np.array(self._more_arenas, np.int64).reshape(-1, 2)])

    @property
    def has_lists(self) -> bool:
        """Whether the plan's index buffer is not the forward plan's."""
        return bool(self._lists)

    def programs(self) -> ProgramTable:
        """Of the derivatives, with additions among them."""
        return self._programs.having(self.program_of)

    def _add(self, operand: list[int], source: int, begin: int, n: int, owners: np.ndarray | None) -> None:
        """Add rows of the window `source`, from `begin` on, to an operand; row owners[i] instead of i."""
        access, window, start, distance, count = operand
        if access < _GATHER:
            positions = -1 if owners is None else self._list(owners)
            self._add_rows((access, self._gradient(window), start, distance, count), source, begin, n, positions)
            return
        segments = [(window, start, -1, count)]
        if access == _GATHER_MANY:
            segments = self._segments[start : start + distance]
        for seen, rows, at, some in segments:
            positions, target = at, (_GATHER, self._gradient(seen), rows, 0, some)
            listed = self._ran.plan.indices[rows : rows + some]
            places = None if at < 0 else self._ran.plan.indices[at : at + some]
            if owners is not None:
                places = owners if places is None else owners[places]
                positions = -2
            groups = self._table.backend.loops.groups(listed)
            if groups is not None:  # rows that occur several times are added up by one thread each
                members = groups.members if places is None else places[groups.members]
                k = len(groups.rows)
                target = (_GATHER_MANY, target[1], self._list(groups.offsets, members, groups.rows), k, some)
                positions = -1
            elif positions == -2:
                assert places is not None
                positions = self._list(places)
            self._add_rows(target, source, begin, some, positions)

    def _add_rows(self, target: tuple[int, ...], source: int, begin: int, n: int, positions: int) -> None:
        self._kinds.append(ADD_ROWS - source)
        self._batches.append((0, begin, n, len(self._operands), 0, positions))
        self._operands.append(target)

    def _gradient(self, window: int) -> int:
        """The window of gradients that is like one of values."""
        self._touch(window)
        return self._n_windows + window

    def _touch(self, window: int) -> None:
        """Have the gradients of an arena in place."""
        arena = self._arena_of[window]
        if not self._addresses[1][arena, 0]:
            flat, width = self._gradients.flat(arena)
            self._addresses[1][arena] = self._table.backend.address(flat), width

    def _computed(self, rows: TypeRows, column: int, width: int) -> int:
        return self._window((id(rows), column, width), (id(rows),), rows.flat, rows.how.derivative.width, column, width)

    def _saved(self, rows: TypeRows, column: int, width: int) -> int:
        saved = rows.saved
        assert saved is not None
        return self._window((id(saved), column, width), (id(saved),), saved.rows, saved.how.width, column, width)

    def _window(self, key: Any, of_arena: Any, buffer: Any, row: int, column: int, width: int) -> int:
        """The window of some columns of a buffer's rows."""
        found = self._windows_of.get(key)
        if found is None:
            arena = self._windows_of.get(of_arena)
            if arena is None:
                arena = self._windows_of[of_arena] = 2 * self._n_arenas + len(self._more_arenas)
                self._more_arenas.append((self._table.backend.address(buffer), row))
            found = self._windows_of[key] = 2 * self._n_windows + len(self._more_windows)
            self._more_windows.append((arena, column, width))
        return found

    def _list(self, *parts: np.ndarray) -> int:
        """Where a list, that the plan's index buffer gets at its end, begins."""
        begin = self._listed
        self._lists += parts
        self._listed += sum(map(len, parts))
        return begin
