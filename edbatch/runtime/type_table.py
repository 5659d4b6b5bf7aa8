"""The node types of one graph, as the columns that the planner reads and the kernels that the executor calls."""

from __future__ import annotations

from collections import defaultdict
from functools import cache, partial
from typing import Any

import numpy as np

from edbatch.base.exclusive import exclusive, lock
from edbatch.devices import Device
from edbatch.errors import EdBatchError
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type, columns_of_type
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.op import Kind, no_gradient
from edbatch.graph.options import current_options
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, VIEWS
from edbatch.kernels.backend import Backend
from edbatch.kernels.row_kernels import adding_rows
from edbatch.memory.plan.addresses import KEPT
from edbatch.memory.plan.pool import pool_of
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.backward.output_sets import OutputSets
from edbatch.runtime.compile.list_program import ListProgram, forward_of
from edbatch.runtime.compile.program import Program
from edbatch.runtime.compile.program_table import DerivativePrograms, ProgramTable
from edbatch.runtime.compile.scattered import ScatteredKernels


class BoundType:
    """One type, ready to run: what computes it, and where its results go.

    Attributes:
        program: of a type that computes; None of a source.
        window: plain window of the results.
        derivatives: what has been compiled to go back through it; see `runtime.compile.derivatives`.
    """

    __slots__ = ("derivatives", "program", "type", "window")

    def __init__(self, type: NodeType, windows: Windows, backend: Backend) -> None:
        self.type = type
        self.window = windows.plain(type.out.shape, type.out.dtype)
        self.program: Program | ListProgram | None = None
        if type.op.equations is not None:
            self.program = forward_of(type, backend)
        elif type.op.kind is not Kind.SOURCE:
            self.program = Program(body_of_type(type)[0], columns_of_type(type), backend)
        self.derivatives: dict[Any, Any] = {}


def holds_parameters(type: NodeType) -> bool:
    """Whether nodes of a type read parameters."""
    if isinstance(type.op, CellOp):
        return any(holds_parameters(node.type) for node in type.op.body.nodes)
    return type.op is PARAMETER or any(isinstance(operand, ParameterSpec) for operand in type.operands)


class TypeTable:
    """Numbers types 0, 1, 2, ... in order of appearance and holds their columns.

    Graphs share a table (see `shared_table`), so that a mini-batch of types that have been seen finds all in place.

    Attributes:
        bound: the types, ready to run.
        device, backend: where graphs with this table run, and what computes there.
        pool: of buffers there.
        windows: of all arenas; scattered: what reads, and adds to, those whose rows have entries that do not lie side
            by side.
        output_sets: of the types' outputs, those that gradients flow into.
        adding_rows: from a dtype to what adds rows of it.
        local: per type id the type's number; -1 before it was seen.
        n_args, n_payload, singles, lists, is_source, window: per type; see `runtime.lower` and `memory.plan.planner`.
        has_early, has_late, looks_up: per type, whether it is a cell of which there may be something to split off (see
            `passes.split_stages`); `may_split`: for any of these reasons; `any_split`: for any type; `splits` holds how
            it was done (see `runtime.split`).
        holds_parameters, ends_gradients: per type; see `runtime.backward.reach`.
        kept: per type, where results are kept with what is saved: nothing is; see `runtime.backward.saving`.
        view_windows: per code of a view, its window; -1 before it was seen.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.backend = device.backend
        self.pool = pool_of(self.backend)
        self.local = np.full(64, -1, np.int32)
        self._names: dict[bytes, tuple[str, ...]] = {}
        self._gone = TYPES.made - len(TYPES)
        self.windows = Windows()
        self.bound: list[BoundType] = []
        self.splits: dict[Any, Any] = {}
        self.scattered = ScatteredKernels(self.windows, self.backend)
        self.output_sets = OutputSets()
        self.adding_rows = cache(partial(adding_rows, backend=self.backend))
        # By whether kernels are fused.
        self._forward: dict[bool, ProgramTable] = defaultdict(ProgramTable)
        self._saving: dict[bool, ProgramTable] = defaultdict(ProgramTable)
        self._derivatives: dict[bool, DerivativePrograms] = defaultdict(DerivativePrograms)
        self.view_windows = np.zeros(1, np.int32)  # code 0 is no view
        self._columns()

    @property
    def programs(self) -> ProgramTable:
        """Of the types that are compiled."""
        return self._forward[current_options().fuse]

    @property
    def saving_programs(self) -> ProgramTable:
        """Of the types that are compiled, in runs that save."""
        return self._saving[current_options().fuse]

    @property
    def derivative_programs(self) -> DerivativePrograms:
        """Of what goes back through the types."""
        return self._derivatives[current_options().fuse]

    @property
    def count(self) -> int:
        """Of all types."""
        return len(self.bound)

    def program(self, kind: int) -> Program | ListProgram | None:
        """What computes a type, if it is compiled."""
        return self.bound[kind].program

    @exclusive
    def number(self, types: np.ndarray) -> np.ndarray:
        """The numbers of these type ids; types not seen before are added."""
        if len(types) and int(types.max()) >= len(self.local):
            self.local = np.append(self.local, np.full(TYPES.made, -1, np.int32))
        local = self.local[types]
        if len(local) and local.min() < 0:
            new = np.unique(types[local < 0]).tolist()
            bound = [self._bind(TYPES[id]) for id in new]  # all, or raise with nothing changed
            first, self.bound = len(self.bound), self.bound + bound
            self._columns()
            self.local[new] = np.arange(first, len(self.bound))
            local = self.local[types]
        return local

    def _bind(self, type: NodeType) -> BoundType:
        if type.device not in (None, self.device):
            raise EdBatchError(f"{type}: expected parameters on {self.device.name}, where the graph runs")
        return BoundType(type, self.windows, self.backend)

    def see(self, args: np.ndarray) -> None:
        """Have a window ready for every view among these operand ids."""
        codes = args >> NODE_BITS
        if len(codes) and (int(codes.max()) >= len(self.view_windows) or self.view_windows[codes].min() < 0):
            with lock:
                if int(codes.max()) >= len(self.view_windows):
                    self.view_windows = np.append(self.view_windows, np.full(len(VIEWS), -1, np.int32))
                for code in np.unique(codes[self.view_windows[codes] < 0]).tolist():
                    view = VIEWS[code]
                    assert view is not None
                    self.view_windows[code] = self.windows.look(view.root.shape, view.root.dtype, view.look)

    def is_full(self) -> bool:
        """Whether new graphs had better begin a new table."""
        gone = TYPES.made - len(TYPES)
        if gone - self._gone > MAX_GONE:  # since it was last counted how many of them are here
            if sum(bound.type.id not in TYPES for bound in self.bound) > MAX_GONE:
                return True
            self._gone = gone
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

    def _columns(self) -> None:
        types = [bound.type for bound in self.bound]
        self.n_args = np.array([type.n_args for type in types], np.int32)
        self.n_payload = np.array([type.op.payload for type in types], np.int32)
        self.singles = np.array([type.op.singles for type in types], np.int32)
        self.lists = np.array([type.lists for type in types], np.int32)
        self.is_source = np.array([type.op.kind is Kind.SOURCE for type in types], np.bool_)
        self.has_early = np.array([isinstance(type.op, CellOp) and type.op.has_early for type in types], np.bool_)
        self.has_late = np.array([isinstance(type.op, CellOp) and type.op.has_late for type in types], np.bool_)
        looks_up = [isinstance(type.op, CellOp) and type.op.looks_up and type.op.payload == 1 for type in types]
        self.looks_up = np.array(looks_up, np.bool_)
        self.may_split = self.has_early | self.has_late | self.looks_up
        self.any_split = bool(self.may_split.any())
        self.window = np.array([bound.window for bound in self.bound], np.int32)
        self.holds_parameters = np.array([holds_parameters(type) for type in types], np.bool_)
        self.kept = np.zeros(len(types), KEPT)
        self.ends_gradients = np.array([type.op.gradient is no_gradient for type in types], np.bool_)


# A table with more types or windows than this is left to the graphs that use it, and a new one is begun: shapes that
# vary per sample make types without end, and views of single entries windows; models come and go.
MAX_TYPES = 1000
MAX_WINDOWS = 10_000
MAX_GONE = 100  # types whose parameters are gone

MAX_SETS = 1000  # of types, whose names are remembered

_shared: dict[Device, TypeTable] = {}


def shared_table(device: Device) -> TypeTable:
    """The type table that new graphs on this device use."""
    table = _shared.get(device)
    if table is None or table.is_full():
        table = _shared[device] = TypeTable(device)
    return table
