"""What is kept of a run, for going back through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.memory.plan.format import Plan

if TYPE_CHECKING:
    from edbatch.runtime.backward.saving import Saved


@dataclass(frozen=True)
class Ran:
    """A plan that has run.

    Args:
        plan: its batches.
        indices: its index buffer on the device.
        n_sources: how many of them, the first, hold sources.
        nodes: of the graph, batch after batch.
        saved: what the forward run saved, per type.
        time: when it ran, see `graph.model.writes`.
    """

    plan: Plan
    indices: Any
    n_sources: int
    nodes: np.ndarray
    saved: dict[int, Saved]
    time: int
