"""The node types of one graph, as the columns that the planner reads and the kernels that the executor calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from edbatch.base.locking import lock
from edbatch.compiling.array_table import ArrayTable
from edbatch.devices import Device
from edbatch.errors import EdBatchError
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS
from edbatch.kernels.backend import Backend
from edbatch.memory.plan.pool import pool_of
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.backward.live_outputs import LiveOutputs
from edbatch.runtime.backward.rules import GradientRules
from edbatch.runtime.compile.program_table import ProgramTable
from edbatch.runtime.compile.scattered import ScatteredKernels
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_columns import BoundType, DerivedType, no_facts


class TypeTable:
    """Numbers types 0, 1, 2, ... in order of appearance and holds their columns.

    Graphs share a table (see `shared_table`), so that a mini-batch of types that have been seen finds all in place.

    Args:
        plain: whether no optimising pass runs, see `Options.compile`.

    Attributes:
        bound: the types, ready to run, and those that only backward passes have.
        free: a heap of evaluations that no graph has, with their numbers.
        programs, saving_programs: of all types; those of runs that save values for a backward pass.
        scattered: what reads, and adds to, windows whose rows have entries that do not lie side by side.
        live_outputs: of the types' outputs, those that gradients flow into; rules: by which gradients flow, see
            `backward.rules`.
        splits: how cells have been split, see `runtime.split`.
        facts: columns over all types.
        any_split, any_calls: whether any type may be split, and calls functions of the user's.
    """

    def __init__(self, device: Device, plain: bool) -> None:
        self.device, self.plain = device, plain
        self.backend = device.backend
        self.pool = pool_of(self.backend)
        self._names: dict[bytes, tuple[str, ...]] = {}
        self._run_stretch = TYPES.made - len(TYPES)
        self.windows = Windows()
        self.free: list[Any] = []
        self.bound: list[Any] = []
        self._derived: dict[DerivedType, int] = {}
        self.splits: dict[Any, Any] = {}
        self.scattered = ScatteredKernels(self.windows, self.backend)
        self.live_outputs = LiveOutputs(self)
        self.rules = GradientRules(self)
        self.programs = ProgramTable(self, saves=False)
        self.saving_programs = ProgramTable(self, saves=True)
        self.any_split = self.any_calls = False
        self.facts = ArrayTable(no_facts())

    @property
    def count(self) -> int:
        """Of all types."""
        return len(self.bound)

    def derived(self, types: Sequence[DerivedType]) -> list[int]:
        """The numbers of what runs in backward passes."""
        with lock:
            new = [one for one in dict.fromkeys(types) if one not in self._derived]
            if new:
                first = len(self.bound)
                self._append(new)
                self._derived |= {one: first + at for at, one in enumerate(new)}
            return [self._derived[one] for one in types]

    def number(self, types: np.ndarray) -> np.ndarray:
        """The numbers of these type ids; types not seen before are added."""
        with lock:
            return self._number(types)

    def _number(self, types: np.ndarray) -> np.ndarray:
        if len(types) and int(types.max()) >= len(self.facts.tables.numbers):
            more = np.append(self.facts.tables.numbers, np.full(TYPES.made, -1, np.int32))
            self.facts = ArrayTable(self.facts.tables._replace(numbers=more))
        numbers = self.facts.tables.numbers
        local = numbers[types]
        if len(local) and local.min() < 0:
            new = sorted(set(types[local < 0].tolist()))
            bound = [self._bind(TYPES[id]) for id in new]  # all, or raise with nothing changed
            first = len(self.bound)
            self._append(bound)
            numbers[new] = np.arange(first, len(self.bound))
            local = numbers[types]
        return local

    def _append(self, bound: list[Any]) -> None:
        self.bound = self.bound + bound
        new = self.bound[len(self.facts.tables.windows) :]  # with those that an interrupt kept out before
        facts = self.facts.tables.extended(new, self.windows)
        self.any_split, self.any_calls = bool(facts.may_split.any()), bool(facts.has_calls.any())
        self.facts = ArrayTable(facts)

    def _bind(self, type: NodeType) -> BoundType:
        if type.device not in (None, self.device):
            raise EdBatchError(f"{type}: expected parameters on {self.device.name}, where the graph runs")
        if isinstance(type.op, CellOp) and type.op.looks_up and type.n_integers == 1:
            looking.add(type.id)
        return BoundType(type, self.windows, self.backend, self.plain)

    def see(self, args: np.ndarray) -> None:
        """Have a window ready for every view among these operand ids."""
        codes = args >> NODE_BITS
        known = self.facts.tables.view_windows
        if len(codes) and (int(codes.max()) >= len(known) or known[codes].min() < 0):
            with lock:
                known = self.facts.tables.view_windows
                if int(codes.max()) >= len(known):
                    known = np.append(known, np.full(len(VIEWS), -1, np.int32))
                    self.facts = ArrayTable(self.facts.tables._replace(view_windows=known))
                for code in np.unique(codes[known[codes] < 0]).tolist():
                    view = VIEWS[code]
                    assert view is not None
                    known[code] = self.windows.look(view.root.shape, view.root.dtype, view.look)

    def by_window(self, ids: np.ndarray, nodes: Nodes) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
        """The positions of expressions that are seen through one window, that window, and their rows in it."""
        self.see(ids)
        which, codes = ids & NODE_MASK, ids >> NODE_BITS
        windows = np.where(
            codes > 0, self.facts.tables.view_windows[codes], self.facts.tables.windows[nodes.types[which]]
        )
        for window in np.unique(windows).tolist():
            chosen = np.flatnonzero(windows == window)
            yield chosen, window, nodes.row[which[chosen]]

    def rows(
        self, ids: np.ndarray, nodes: Nodes, array: Callable[[int], Any]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same positions, and copies on the host of the rows; `array`: what a window shows."""
        for chosen, window, rows in self.by_window(ids, nodes):
            yield chosen, rows_to_host(array(window), rows, self.backend)

    def is_full(self) -> bool:
        """Whether new graphs had better begin a new table."""
        gone = TYPES.made - len(TYPES)
        if gone - self._run_stretch > MAX_GONE:  # since it was last counted how many of them are here
            types = [bound.type.id for bound in self.bound if isinstance(bound, BoundType)]
            if sum(id not in TYPES for id in types) > MAX_GONE:
                return True
            self._run_stretch = gone
        return len(self.bound) > MAX_TYPES or len(self.windows.windows) > MAX_WINDOWS

    def names(self, present: np.ndarray) -> tuple[str, ...]:
        """The names of some types, by their numbers, made distinct where two models use one name."""
        key = present.tobytes()
        found = self._names.get(key)
        if found is None:
            if len(self._names) >= MAX_SETS:
                self._names.clear()
            seen: dict[str, int] = {}
            names = []
            for kind in present.tolist():
                name = self.bound[kind].type.name
                seen[name] = seen.get(name, 0) + 1
                names.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
            found = self._names[key] = tuple(names)
        return found


def rows_to_host(array: Any, rows: np.ndarray, backend: Backend) -> np.ndarray:
    """Some rows [k, *shape] of a device's array, copied to the host; those that lie side by side in one piece."""
    first, n = int(rows[0]), len(rows)
    with backend.active():
        if (rows == np.arange(first, first + n)).all():
            return np.array(backend.to_host(array[first : first + n]))
        return backend.to_host(array[backend.from_host(rows)])


# A table with more types or windows than this is left to the graphs that use it, and a new one is begun: shapes that
# vary per sample make types without end, and views of single entries windows; models come and go.
MAX_TYPES = 3000
MAX_WINDOWS = 30_000
MAX_GONE = 100  # types whose parameters are gone

MAX_SETS = 1000  # of types, whose names are remembered

#: Ids of types of which what equal look-ups give may be computed once; plans of these depend on integers.
looking: set[int] = set()

_shared: dict[tuple[Device, bool], TypeTable] = {}


def shared_table(device: Device, plain: bool = False) -> TypeTable:
    """The type table that new graphs on this device use."""
    table = _shared.get((device, plain))
    if table is None or table.is_full():
        table = _shared[device, plain] = TypeTable(device, plain)
    return table
