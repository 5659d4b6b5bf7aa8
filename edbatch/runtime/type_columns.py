"""The columns of a type table: what compiled passes, and the runtime, know of each type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.graph.cell.entry import CellOp
from edbatch.graph.op import Kind, no_gradient
from edbatch.memory.plan.addresses import KEPT
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.bound_type import BoundType, holds_parameters

_INTEGERS = "n_args", "payloads", "singles", "lists", "window", "arenas"
_FLAGS = "is_source", "has_early", "has_late", "looks_up", "holds_parameters", "ends_gradients"


class ColumnsOfTypes:
    """Columns over types, in the order in which they came.

    Attributes:
        n_args, payloads, singles, lists, is_source, may_split, window, arenas: see `memory.plan.columns.TypeColumns`.
        has_early, has_late, looks_up: whether it is a cell of which there may be something to split off (see
            `passes.split_stages`); `may_split`: for any of these reasons; `any_split`: for any type.
        holds_parameters, ends_gradients: see `runtime.backward.reach`.
        kept: where results are kept with what is saved: nothing is; see `runtime.backward.saving`.
    """

    n_args: np.ndarray
    payloads: np.ndarray
    singles: np.ndarray
    lists: np.ndarray
    window: np.ndarray
    arenas: np.ndarray
    is_source: np.ndarray
    has_early: np.ndarray
    has_late: np.ndarray
    looks_up: np.ndarray
    may_split: np.ndarray
    any_split: bool
    holds_parameters: np.ndarray
    ends_gradients: np.ndarray
    kept: np.ndarray

    def __init__(self) -> None:
        found = {name: np.zeros(0, np.int32) for name in _INTEGERS}
        found |= {name: np.zeros(0, np.bool_) for name in (*_FLAGS, "may_split")}
        vars(self).update(found, any_split=False, kept=np.zeros(0, KEPT))

    def extend(self, new: Sequence[BoundType], windows: Windows) -> None:
        """Append types to all columns at once, or an interrupt would leave some of them shorter than others.

        Args:
            windows: of the types.
        """
        types = [one.type for one in new]
        cells = [type.op if isinstance(type.op, CellOp) else None for type in types]
        more: dict[str, list[Any]] = {
            "n_args": [type.n_args for type in types],
            "payloads": [type.op.payload for type in types],
            "singles": [type.op.singles for type in types],
            "lists": [type.lists for type in types],
            "window": [one.window for one in new],
            "arenas": [windows.windows[one.window].arena for one in new],
            "is_source": [type.op.kind is Kind.SOURCE for type in types],
            "has_early": [op is not None and op.has_early for op in cells],
            "has_late": [op is not None and op.has_late for op in cells],
            "looks_up": [op is not None and op.looks_up and op.payload == 1 for op in cells],
            "holds_parameters": [holds_parameters(type) for type in types],
            "ends_gradients": [type.op.gradient is no_gradient for type in types],
        }
        found = {name: _longer(getattr(self, name), values) for name, values in more.items()}
        may_split = found["has_early"] | found["has_late"] | found["looks_up"]
        kept = np.zeros(len(may_split), KEPT)
        vars(self).update(found, may_split=may_split, any_split=bool(may_split.any()), kept=kept)


def _longer(column: np.ndarray, values: list[Any]) -> np.ndarray:
    return np.concatenate([column, np.array(values, column.dtype)])
