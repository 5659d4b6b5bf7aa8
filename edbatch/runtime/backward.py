"""Backward: the batches of the forward plans once more, the last first, each through its type's derivative.

Gradients of values lie in arenas parallel to those of the values. Where a batch read a slice, its gradients are added
to that slice; where it gathered, they are scattered, row after row in one order, so that a sum is always the same. A
parameter's gradient waits until all batches of a type are through: the rows of their operands and gradients then lie
side by side, and it is ONE product ("lazy batching", Cavs, section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.body import Value
from edbatch.graph.derivative import Given, Term
from edbatch.graph.gradient_sum import stops
from edbatch.graph.node_type import parameter_of
from edbatch.graph.op import Share
from edbatch.graph.parameters import LookupParameters, Parameter
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import VIEWS
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Plan
from edbatch.memory.pool import BufferPool
from edbatch.runtime.derivatives import Compiled, compiled, weight
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.operand_rows import GradientArenas, add, read
from edbatch.runtime.ran import Ran
from edbatch.runtime.reach import flow, per_batch
from edbatch.runtime.saving import Saved
from edbatch.runtime.type_table import BoundType, TypeTable


@dataclass
class _Rows:
    """Of one type in one plan: what its derivative has computed, side by side; filled from the end.

    Args:
        how: the derivative.
        flat: the buffer of the rows [active nodes, width].
        begin: of the rows filled so far.
        payload, chosen: of the batches gone through, the last first: the nodes' integers, and which of the type's
            nodes in the plan they are (None: all of the batch).
    """

    how: Compiled
    flat: Any
    begin: int
    payload: list[Any] = field(default_factory=list)
    chosen: list[Any] = field(default_factory=list)


class Backward:
    """The gradients of one expression with respect to the values of its graph, and to parameters.

    Args:
        table, arenas, nodes: of the graph.
        ran: its plans.
        root: the node that gradients come from, seen through view `code`; `seed` is the gradient of its `window`.
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
        root: int,
        window: int,
        code: int,
        seed: np.ndarray,
        pool: BufferPool,
        backend: Any,
        check_nan: bool,
    ) -> None:
        self._table = table
        self._arenas = arenas
        self._nodes = nodes
        self._ran = ran
        self._root, self._window, self._code, self._seed = root, window, code, seed
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
        table, nodes = self._table, self._nodes
        self._view_stops = _view_stops()
        wanted = table.is_source | table.holds_parameters if sources else table.holds_parameters
        self.requires, self.active = flow(
            nodes.n, self._root, nodes.types, nodes.starts, nodes.counts, nodes.args, wanted, table.ends_gradients,
            self._view_stops,
        )  # fmt: skip
        if self._view_stops[self._code] or not self.active[self._root]:
            self.active[:] = False
            return
        self.gradients.array(self._window)[nodes.row[self._root]] = self._seed
        arrays = self._arenas.arrays()
        for ran in reversed(self._ran):
            self._back(ran, arrays, not sources)

    def release(self) -> None:
        """Give the memory of the gradients back."""
        self.gradients.release()

    def _back(self, ran: Ran, arrays: list[Any], to_parameters: bool) -> None:
        table, nodes, plan = self._table, self._nodes, ran.plan
        number, rows, operands = per_batch(
            plan.batches, ran.nodes, nodes.starts, nodes.counts, nodes.args, self.active, self._view_stops,
            table.variadic, len(table.bound),
        )  # fmt: skip
        if not number.any():
            return
        buffers: dict[int, _Rows] = {}
        left = np.bincount(plan.batches[:, 0], plan.batches[:, 2], len(table.bound)).astype(np.int64).tolist()
        batches, actives = plan.batches.tolist(), number.tolist()
        end = len(ran.nodes)
        for at in range(len(batches) - 1, ran.n_sources - 1, -1):
            kind, _, n, *_ = batch = batches[at]
            left[kind] -= n
            end -= n
            if not actives[at]:
                continue
            type = table.bound[kind]
            chosen = None if actives[at] == n else np.flatnonzero(self.active[ran.nodes[end : end + n]])
            if type.type.op.variadic:
                self._back_variadic(type, batch, plan, arrays, chosen)
                continue
            if kind not in buffers:
                buffers[kind] = self._buffer(type, int(operands[kind]), int(rows[kind]), kind in ran.saved)
            self._back_batch(type, buffers[kind], batch, plan, arrays, chosen, ran.saved.get(kind), left[kind])
        if to_parameters:
            for kind, found in buffers.items():
                self._add_terms(found, int(rows[kind]), ran.saved.get(kind))
            self._add_parameter_nodes(batches[: ran.n_sources], actives)
        for found in buffers.values():
            self._pool.release(found.flat)

    def _buffer(self, type: BoundType, operands: int, rows: int, saving: bool) -> _Rows:
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = [bool(operands >> min(slot, 62) & 1) for slot in range(slots)]
        how = compiled(type, needed, saving, self._backend)
        return _Rows(how, self._pool.acquire(max(1, rows * how.derivative.width), type.type.out.dtype), rows)

    def _back_batch(
        self, type: BoundType, rows: _Rows, batch: list[int], plan: Plan, arrays: list[Any], chosen: Any,
        saved: Saved | None, saved_begin: int,
    ) -> None:  # fmt: skip
        """Go back through one batch; through the nodes `chosen` of it, if not all."""
        _, row, n, first, payload, _ = batch
        how, table, width = rows.how, self._table, rows.how.derivative.width
        m = n if chosen is None else len(chosen)
        rows.begin -= m
        specs = [operand for operand in type.type.operands if not isinstance(operand, ParameterSpec)]
        given: list[Any] = []
        buffers: list[Any] = []
        for source, number in how.derivative.given:
            if source is Given.OPERAND:
                spec = specs[number]
                buffer = self._pool.acquire(n * max(1, spec.size), spec.dtype)
                buffers.append(buffer)
                operand = plan.operands[first + number].tolist()
                x = read(operand, plan, arrays, self._arenas, table.windows, spec, buffer)
            elif source is Given.RESULT:
                x = arrays[type.window][row : row + n]
            elif source is Given.SAVED:
                assert saved is not None
                x = saved.value(number, saved_begin, saved_begin + n)
            else:
                x = self.gradients.array(type.window)[row : row + n]
            given.append(x if chosen is None or len(x) < n else _taken(x, chosen))
        integers = [
            plan.indices[begin : begin + n] if chosen is None else plan.indices[begin : begin + n][chosen]
            for begin in range(payload, payload + n * type.type.op.payload, n)
        ]
        if how.reads_payload:
            rows.payload.append(integers)
        if saved is not None:
            rows.chosen.append(np.arange(saved_begin, saved_begin + n) if chosen is None else saved_begin + chosen)
        if how.program is not None:
            out = rows.flat[rows.begin * width : (rows.begin + m) * width].reshape(m, width)
            how.program(out, *given, *integers)
            if self._check_nan and np.isnan(out).any():
                raise EdBatchError(f"NaN in the gradient of {type.type} ({n} in its batch)")
            computed, begin = rows.flat, rows.begin * width
            if chosen is not None:  # as rows of the whole batch, zero where no gradient flows
                whole = np.zeros((n, width), out.dtype)
                whole[chosen] = out
                computed, begin = whole.reshape(-1), 0
            for slot, place in enumerate(how.derivative.operands):
                if place is not None:
                    operand = plan.operands[first + slot].tolist()
                    add(operand, plan, self.gradients, table.windows, computed, begin + place.column, width, place.spec)
        for buffer in buffers:
            self._pool.release(buffer)

    def _back_variadic(self, type: BoundType, batch: list[int], plan: Plan, arrays: list[Any], chosen: Any) -> None:
        """Go back through a batch of reductions over lists: each operand gets its share."""
        _, row, n, first, _, begin = batch
        rule = type.type.op.gradient
        assert isinstance(rule, Share)
        offsets = plan.indices[begin : begin + n + 1]
        lengths = np.diff(offsets)
        spec = type.type.out
        gradient = self.gradients.array(type.window)[row : row + n]
        operand = plan.operands[first].tolist()
        program = weight(type, self._backend)
        parts = None
        buffer = self._pool.acquire(max(1, operand[4] * spec.size), spec.dtype)
        if program is not None:
            x = read(operand, plan, arrays, self._arenas, self._table.windows, spec, buffer)
            parts = np.empty((operand[4], *spec.shape), spec.dtype)
            program(parts, np.repeat(arrays[type.window][row : row + n], lengths, axis=0), x)
        if rule.divided:
            wide = lengths.astype(spec.dtype).reshape(n, *(1,) * len(spec.shape))
            gradient = gradient / (wide if parts is None else np.add.reduceat(parts, offsets[:-1], axis=0))
        rows = np.repeat(gradient, lengths, axis=0)
        if parts is not None:
            rows *= parts
        if chosen is not None:
            idle = np.ones(n, np.bool_)
            idle[chosen] = False
            rows[np.repeat(idle, lengths)] = 0
        if self._check_nan and np.isnan(rows).any():
            raise EdBatchError(f"NaN in the gradient of {type.type} ({n} in its batch)")
        add(operand, plan, self.gradients, self._table.windows, rows.reshape(-1), 0, spec.size, spec)
        self._pool.release(buffer)

    def _add_terms(self, rows: _Rows, n: int, saved: Saved | None) -> None:
        """Add what the batches of a type have left to the gradients of its parameters."""
        how, width = rows.how, rows.how.derivative.width
        table = rows.flat[: n * width].reshape(n, width)
        of_saved: dict[int, Any] = {}
        for term in how.derivative.terms:
            parts = []
            for part in term.parts:
                if isinstance(part, Value):
                    assert saved is not None
                    if part.node not in of_saved:
                        of_saved[part.node] = _chosen(saved, part.node, rows.chosen)
                    x = of_saved[part.node]
                    parts.append(x if part.view is None else part.view.look(x))
                else:
                    end = part.column + part.spec.size
                    parts.append(table[:, part.column : end].reshape(n, *part.spec.shape))
            _add_term(parameter_of(term.parameter), term, parts, rows.payload)

    def _add_parameter_nodes(self, sources: list[list[int]], actives: list[int]) -> None:
        """Add the gradients of nodes that are parameters."""
        for (kind, row, n, *_), active in zip(sources, actives, strict=False):
            type = self._table.bound[kind]
            if active and type.type.op is PARAMETER:
                _add_sum(parameter_of(type.type.attributes[0][1]), self.gradients.array(type.window)[row : row + n])


def _view_stops() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    if len(_stops) < len(VIEWS):
        _stops = np.append(_stops, [stops(view) for view in VIEWS[len(_stops) :]])
    return _stops


_stops = np.zeros(1, np.bool_)  # code 0 is no view


def _chosen(saved: Saved, node: int, chosen: list[np.ndarray]) -> Any:
    """What was saved for the nodes that gradients flowed into: in place if those are all, else copied."""
    indices = np.concatenate(chosen[::-1])
    x = saved.value(node, 0, len(saved.rows))
    return x if len(indices) == len(x) else x[indices]


def _taken(x: Any, chosen: np.ndarray) -> Any:
    return np.ascontiguousarray(x[chosen])


def _add_term(parameter: Parameter, term: Term, parts: list[Any], payload: list[list[Any]]) -> None:
    if term.index is not None:
        assert isinstance(parameter, LookupParameters)
        if term.index < 0:
            rows = np.concatenate([integers[-1 - term.index] for integers in reversed(payload)])
        else:
            rows = np.full(len(parts[0]), term.index)
        parameter.add_rows(rows, parts[0])
    elif len(parts) == 1:
        _add_sum(parameter, parts[0])
    else:
        left, right = (part.reshape(-1, part.shape[-1]) for part in parts)
        whole, fresh = parameter.accumulator()
        # Matrices are stored by columns: the transpose is what lies row by row.
        if fresh:
            np.matmul(right.T, left, out=whole.T)
        else:
            whole += np.matmul(right.T, left).T


def _add_sum(parameter: Parameter, rows: Any) -> None:
    whole, fresh = parameter.accumulator()
    if fresh:
        np.sum(rows, axis=0, out=whole)
    else:
        whole += rows.sum(axis=0)
