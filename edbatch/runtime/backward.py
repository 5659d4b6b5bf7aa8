"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.gradient_sum import stops
from edbatch.graph.spec import Spec
from edbatch.graph.views import VIEWS
from edbatch.memory.arenas import Arenas
from edbatch.memory.pool import BufferPool
from edbatch.runtime.backward_plan import BackwardPlan
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.operand_rows import GradientArenas
from edbatch.runtime.ran import Ran
from edbatch.runtime.reach import flow, per_batch
from edbatch.runtime.type_table import TypeTable


@dataclass(frozen=True)
class Root:
    """What gradients are of.

    Args:
        node: of the graph.
        code: of the view that it is seen through.
        window: the window that shows it.
        seed: its gradient.
    """

    node: int
    code: int
    window: int
    seed: np.ndarray


def seed_of(spec: Spec, gradient: Any) -> np.ndarray:
    """The gradient that a caller gave for an expression, or 1 for a scalar.

    Raises:
        EdBatchError: it has another shape than the expression, or there is none and the expression is no scalar.
    """
    if gradient is None:
        if spec.shape:
            raise EdBatchError(
                f"backward of an expression of shape {spec.shape}: expected a scalar, or its gradient as an argument"
            )
        return np.ones((), spec.dtype)
    try:
        seed = np.array(gradient, spec.dtype)
    except (TypeError, ValueError) as error:
        raise EdBatchError(f"backward: expected a gradient of numbers ({error})") from None
    if seed.shape != spec.shape:
        raise EdBatchError(f"backward: expected a gradient of shape {spec.shape}, got {seed.shape}")
    return seed


class Backward:
    """The gradients of one expression with respect to the values of its graph, and to parameters.

    Args:
        table, arenas, nodes: of the graph.
        ran: its plans.
        root: where gradients come from.
        pool, backend: for buffers, and to compute with.
        check_nan: raise after the first batch that computes a NaN.

    Attributes:
        requires, active: per node, whether its gradient was asked for, and whether one flowed into it.
        has_sources: whether gradients of inputs and constants were asked for.
        gradients: of the values.
    """

    def __init__(
        self,
        table: TypeTable,
        arenas: Arenas,
        nodes: Nodes,
        ran: list[Ran],
        root: Root,
        pool: BufferPool,
        backend: Any,
        check_nan: bool,
    ) -> None:
        self._table = table
        self._arenas = arenas
        self._nodes = nodes
        self._ran = ran
        self._root = root
        self._pool = pool
        self._backend = backend
        self._check_nan = check_nan
        self.gradients = GradientArenas(table.windows, arenas, pool)

    def run(self, sources: bool = False) -> None:
        """Compute the gradients, and add them to the parameters'.

        Args:
            sources: compute those of inputs and constants too, and leave the parameters' alone.
        """
        self.release()
        self.has_sources = sources
        table, nodes, root = self._table, self._nodes, self._root
        view_stops = _view_stops()
        wanted = table.is_source | table.holds_parameters if sources else table.holds_parameters
        self.requires, self.active = flow(
            np.concatenate([ran.nodes for ran in self._ran]), root.node, nodes.types[: nodes.n], nodes.starts,
            nodes.counts, nodes.args, wanted, table.ends_gradients, view_stops,
        )  # fmt: skip
        if view_stops[root.code] or not self.active[root.node]:
            self.active[:] = False
            return
        self.gradients.array(root.window)[nodes.row[root.node]] = root.seed
        for ran in reversed(self._ran):
            number, rows, operands = per_batch(
                ran.plan.batches, ran.nodes, nodes.starts, nodes.counts, nodes.args, self.active, view_stops,
                table.variadic, len(table.bound),
            )  # fmt: skip
            if number.any():
                plan = BackwardPlan(
                    ran, self._arenas, self.gradients, table, self._pool, self._backend, self._check_nan
                )
                plan.run(number.tolist(), self.active, rows, operands)
                if not sources:
                    plan.add_to_parameters(number.tolist())
                plan.release()

    def release(self) -> None:
        """Give the memory of the gradients back."""
        self.gradients.release()


def _view_stops() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view
