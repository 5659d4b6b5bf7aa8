"""Types that are ready to run, and the columns of a type table: what compiled passes, and the runtime, know of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind, no_gradient
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend
from edbatch.kernels.program import Dispatch
from edbatch.memory.plan.addresses import SAVING
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.compile.lengths import is_ours
from edbatch.runtime.compile.program import FORWARD, Program


class BoundType:
    """One type, ready to run: what computes it, and where its results go.

    Args:
        plain: whether no optimising pass runs.

    Attributes:
        window: plain window of the results.
        derivatives: what has been compiled to go back through it; see `runtime.compile.derivatives`.
    """

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
            self._program = Program(self.type, FORWARD, body_of_type, self.backend, self.plain)
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


def holds_parameters(type: NodeType) -> bool:
    """Whether nodes of a type read parameters."""
    if isinstance(type.op, CellOp):
        return any(holds_parameters(node.type) for node in type.op.body.nodes)
    return type.op is PARAMETER or any(isinstance(operand, ParameterSpec) for operand in type.operands)


_INTEGERS = "n_operands", "n_integers", "singles", "lists", "window", "arenas"
_FLAGS = "is_source", "has_late", "looks_up", "may_split", "holds_parameters", "ends_gradients", "has_calls"
_NEVER = False, False, False


class ColumnsOfTypes:
    """Columns over types, in the order in which they came; for compiled passes, see `memory.plan.columns.TypeColumns`.

    Attributes:
        has_late, looks_up: whether it is a cell of which there may be something to split off, see
            `passes.split_stages`; `may_split`: for these reasons or others; `any_split`: for any type.
        has_calls: whether it is a cell that calls functions of the user's; `any_calls`: for any type.
        holds_parameters, ends_gradients: see `runtime.backward.flow`.
        saving: where values are saved: nothing is; see `runtime.backward.saving`.
    """

    n_operands: np.ndarray
    n_integers: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    window: np.ndarray
    arenas: np.ndarray
    is_source: np.ndarray
    has_late: np.ndarray
    looks_up: np.ndarray
    may_split: np.ndarray
    any_split: bool
    holds_parameters: np.ndarray
    ends_gradients: np.ndarray
    has_calls: np.ndarray
    any_calls: bool
    saving: np.ndarray
    _columns: np.ndarray

    def __init__(self) -> None:
        self._hold(np.zeros((len(_INTEGERS + _FLAGS), 0), np.int32))

    def extend(self, new: Sequence[BoundType | DerivedType], windows: Windows) -> None:
        """Append types to all columns at once, or an interrupt would leave some of them shorter than others."""
        rows = list[tuple[int, ...]]()
        for one in new:
            arena = windows.windows[one.window].arena if windows.windows else 0
            if isinstance(one, DerivedType):
                rows.append((0, 0, 0, 0, one.window, arena, *[0] * len(_FLAGS)))
                continue
            type, op = one.type, one.type.op
            rows.append((type.n_operands, type.n_integers, op.singles, type.lists, one.window, arena))
            early, late, looks_up = (
                (op.has_early, op.has_late, op.looks_up and op.payload == 1) if isinstance(op, CellOp) else _NEVER
            )
            calls, ends = isinstance(op, CellOp) and type.calls, op.gradient is no_gradient
            split = early or late or looks_up
            rows[-1] += op.kind is Kind.SOURCE, late, looks_up, split, holds_parameters(type), ends, calls
        more = np.array(rows, np.int32).reshape(-1, len(self._columns)).T
        self._hold(np.ascontiguousarray(np.append(self._columns, more, axis=1)))  # each column in one piece

    def _hold(self, columns: np.ndarray) -> None:
        """Have these columns [columns, types]."""
        n = len(_INTEGERS)
        flags = columns[n:].astype(np.bool_)
        found: dict[str, Any] = dict(zip(_INTEGERS + _FLAGS, (*columns[:n], *flags), strict=True))
        found |= {"_columns": columns, "saving": np.zeros(columns.shape[1], SAVING)}
        anys = {"any_split": bool(found["may_split"].any()), "any_calls": bool(found["has_calls"].any())}
        vars(self).update(found, **anys)
