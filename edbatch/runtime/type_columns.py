"""Types that are ready to run, and the columns of a type table: facts of each for compiled passes and the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.compiling.array_table import BOOL, INT32, reader
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind, no_gradient
from edbatch.kernels.backend import Backend
from edbatch.kernels.program import NONE, Dispatch
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.compile.lengths import is_ours
from edbatch.runtime.compile.program import FORWARD, Computed, Program


class BoundType:
    """One type, ready to run: what computes it, and where its results go.

    Args:
        plain: whether no optimising pass runs.

    Attributes:
        window: plain window of the results.
        derivatives: what has been compiled to go back through it; see `runtime.compile.derivatives`.
    """

    dispatch = Dispatch(NONE)
    __slots__ = ("_program", "backend", "derivatives", "plain", "type", "window", "windows")

    def __init__(self, type: NodeType, windows: Windows, backend: Backend, plain: bool) -> None:
        self.type, self.windows, self.backend, self.plain = type, windows, backend, plain
        self.window = windows.plain(type.out.shape, type.out.dtype)
        self._program: Program | None = None
        if type.op.composite is not None and not is_ours(type.op):
            body_of_type(type)  # where it cannot be opened, nothing has changed so far
        self.derivatives: dict[Any, Any] = {}

    def program(self) -> Program | None:
        """What computes it; None of a source."""
        if self._program is None and self.type.op.kind is not Kind.SOURCE:
            self._program = Program(self.type, FORWARD, _body, self.backend, self.plain)
        return self._program


class DerivedType(NamedTuple):
    """What runs in batches of backward passes and is no type of nodes: a derivative, or what adds rows.

    Attributes:
        runs: the program, or the task.
        window: of the results; 0: it writes to operands only.
    """

    runs: Program | Dispatch
    window: int

    def program(self) -> Program | None:
        """What computes it, if that is a program."""
        return None if isinstance(self.runs, Dispatch) else self.runs

    @property
    def dispatch(self) -> Dispatch:
        """What runs it, if that is no program."""
        return self.runs if isinstance(self.runs, Dispatch) else Dispatch(NONE)


def _body(type: NodeType) -> Computed:
    return None, body_of_type(type)


class TypeFacts(NamedTuple):
    """Columns over types in the order in which they came: those of `memory.plan.columns.TypeColumns`, and then more.

    Attributes:
        has_late, looks_up: whether it is a cell of which there may be something to split off, see
            `passes.split_stages`; `may_split`: for these reasons or others.
        holds_parameters, ends_gradients: see `runtime.backward.flow`.
        has_calls: whether it calls functions of the user's.
    """

    numbers: np.ndarray
    view_windows: np.ndarray
    n_operands: np.ndarray
    n_integers: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    windows: np.ndarray
    arenas: np.ndarray
    is_source: np.ndarray
    may_split: np.ndarray
    has_late: np.ndarray
    looks_up: np.ndarray
    holds_parameters: np.ndarray
    ends_gradients: np.ndarray
    has_calls: np.ndarray

    def extended(self, new: Sequence[BoundType | DerivedType], windows: Windows) -> TypeFacts:
        """The columns with more types."""
        rows = [_facts_of(one, windows.windows[one.window].arena if windows.windows else 0) for one in new]
        more = [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), _DTYPES[2:], strict=True)]
        return TypeFacts(*self[:2], *map(np.append, self[2:], more)) if rows else self


_DTYPES = *[INT32] * 8, *[BOOL] * 7
facts_in = reader(TypeFacts, *_DTYPES)


def no_facts() -> TypeFacts:
    """Columns over no types; of codes of views there is 0, which is no view."""
    return TypeFacts(np.full(64, -1, INT32), np.zeros(1, INT32), *[np.zeros(0, dtype) for dtype in _DTYPES[2:]])


def _facts_of(one: BoundType | DerivedType, arena: int) -> tuple[int, ...]:
    """The entries of a type in the columns."""
    if isinstance(one, DerivedType):
        return (*[0] * 4, one.window, arena, *[False] * 7)
    type, op = one.type, one.type.op
    early, late, looks_up = False, False, False
    if isinstance(op, CellOp):
        early, late, looks_up = op.has_early, op.has_late, op.looks_up and op.payload == 1
    splits, reads, ends = early or late or looks_up, bool(type.parameters), op.gradient is no_gradient
    counts = type.n_operands, type.n_integers, op.singles, type.lists
    return (*counts, one.window, arena, op.kind is Kind.SOURCE, splits, late, looks_up, reads, ends, type.calls)
