"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.exclusive import Whole
from edbatch.graph.cell import CellOp
from edbatch.graph.derivative import Given
from edbatch.graph.gradient_sum import stops
from edbatch.graph.node_type import Attributes
from edbatch.graph.op import Op
from edbatch.graph.spec import Spec
from edbatch.graph.trace import ARGUMENT
from edbatch.graph.type_body import body_of_type
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS
from edbatch.memory.arenas import Arenas
from edbatch.runtime.backward_plan import BackwardPlan
from edbatch.runtime.derivatives import compiled_outputs
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.operand_rows import GradientArenas
from edbatch.runtime.ran import Ran
from edbatch.runtime.reach import flow, per_batch
from edbatch.runtime.type_table import TypeTable

Steps = tuple[tuple[Op, Attributes], ...]


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
        root, seed: id of the expression that gradients are of, and its own.
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
        root: int,
        seed: np.ndarray,
        check_nan: bool,
    ) -> None:
        self._table = table
        self._arenas = arenas
        self._nodes = nodes
        self._ran = ran
        self._root, self._seed = root, seed
        self._backend = table.backend
        self._check_nan = check_nan
        self.gradients = GradientArenas(table.windows, arenas, table.pool)

    def run(self, sources: bool = False) -> None:
        """Compute the gradients, and add them to the parameters'.

        Args:
            sources: compute those of inputs and constants too, and leave the parameters' alone.
        """
        self.release()
        self.has_sources = sources
        table, nodes = self._table, self._nodes
        root, code = self._root & NODE_MASK, self._root >> NODE_BITS
        view_stops = _view_stops()
        wanted = table.is_source | table.holds_parameters if sources else table.holds_parameters
        self.requires, self.active = flow(
            np.concatenate([ran.nodes for ran in self._ran]), root, nodes.types[: nodes.n], nodes.starts,
            nodes.counts, nodes.args, wanted, table.ends_gradients, view_stops,
        )  # fmt: skip
        if view_stops[code] or not self.active[root]:
            self.active[:] = False
            return
        self.gradients.array(self._window(root, code))[int(nodes.row[root])] = self._backend.from_host(self._seed, "C")
        stopped = self._stopped(view_stops)
        plans = []
        for ran in reversed(self._ran):
            number, rows, operands = per_batch(
                ran.plan.batches, ran.nodes, nodes.starts, nodes.counts, nodes.args, self.active, view_stops,
                table.variadic, len(table.bound),
            )  # fmt: skip
            if number.any():
                plan = BackwardPlan(
                    ran, self._arenas, self.gradients, table, nodes, self.active, number, rows, operands,
                    stopped, self._check_nan,
                )  # fmt: skip
                plan.run()
                plans.append(plan)
        if not sources:
            # All that can fail has been done: parameters get the whole gradient or, after an interrupt, nothing of it.
            with Whole():
                for plan in plans:
                    plan.add_to_parameters()
        for plan in plans:
            plan.release()

    def gradient(self, id: int, spec: Spec) -> Any:
        """The gradient with respect to an expression, as an array of its own."""
        node = id & NODE_MASK
        if node < len(self.active):
            node, steps, output = self._made_at(id)
            if not self.has_sources and not self.requires[node]:
                self.run(sources=True)
            if self.active[node]:
                found = self._row(self.gradients.array, node) if output is None else self._of_output(node, output)
                for op, attributes in steps:
                    found = op.forward(found, **dict(attributes))
                return self._backend.to_host(found[0]).copy()[()]
        return np.zeros(spec.shape, spec.dtype)[()]

    def _made_at(self, id: int) -> tuple[int, Steps, int | None]:
        """The node that computes an expression, the views it is seen through, and of a cell which output it is.

        A cell may return what it was given, and the last part of a cell that was split what others read earlier.
        """
        node, steps = id & NODE_MASK, steps_of(id >> NODE_BITS)
        while True:
            type = self._table.bound[self._nodes.types[node]].type
            if not isinstance(type.op, CellOp):
                return node, steps, None
            body, _, outputs = body_of_type(type)
            begins = [steps_of(step >> NODE_BITS) for step in outputs]
            output = next(at for at, begin in enumerate(begins) if steps[: len(begin)] == begin)
            value, further = body.outputs[output], steps[len(begins[output]) :]
            if body.nodes[value.node].type.op is not ARGUMENT:
                return node, further, output
            given = int(self._nodes.args[self._nodes.starts[node] + value.node])
            shown = () if value.view is None else value.view.steps
            node, steps = given & NODE_MASK, (*steps_of(given >> NODE_BITS), *shown, *further)

    def _of_output(self, node: int, output: int) -> Any:
        """The gradient [1, *shape] of a cell's output, with what flows to it inside the cell."""
        nodes, type = self._nodes, self._table.bound[self._nodes.types[node]]
        how = compiled_outputs(type, self._backend)
        place = how.derivative.operands[output]
        assert place is not None
        assert how.program is not None
        begin, end = int(nodes.starts[node]), int(nodes.starts[node] + nodes.counts[node])
        given = []
        for source, number in how.derivative.given:
            if source is Given.OPERAND:
                given.append(self._row(self._arenas.array, int(nodes.args[begin + number])))
            else:
                given.append(self._row(self._arenas.array if source is Given.RESULT else self.gradients.array, node))
        row = self._backend.empty((1, how.derivative.width), type.type.out.dtype)
        given_integers = self._backend.indices(nodes.args[end : end + type.type.op.payload].astype(np.int32))
        integers = [given_integers[at : at + 1] for at in range(type.type.op.payload)]
        how.program(row, *given, *integers)
        return row[:, place.column : place.column + place.spec.size].reshape(1, *place.spec.shape)

    def _row(self, array: Callable[[int], Any], id: int) -> Any:
        """The row [1, *shape] of an id, of values or of gradients."""
        node = id & NODE_MASK
        row = int(self._nodes.row[node])
        return array(self._window(node, id >> NODE_BITS))[row : row + 1]

    def _window(self, node: int, code: int) -> int:
        self._table.see(np.array([code << NODE_BITS], np.int64))
        return int(self._table.view_windows[code] if code else self._table.window[self._nodes.types[node]])

    def _stopped(self, view_stops: np.ndarray) -> np.ndarray:
        """Per window, whether no gradient flows to what is read through it: each view has one of its own."""
        of_views = self._table.view_windows[: len(view_stops)]
        found = np.zeros(len(self._table.windows.windows), np.bool_)
        found[of_views[view_stops[: len(of_views)] & (of_views >= 0)]] = True
        return found

    def release(self) -> None:
        """Give the memory of the gradients back."""
        self.gradients.release()


def steps_of(code: int) -> Steps:
    """The chain of views that a code stands for."""
    view = VIEWS[code]
    return () if view is None else view.steps


def _view_stops() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view
