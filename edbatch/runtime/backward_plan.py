"""The way back through one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.derivative import Given
from edbatch.graph.node_type import parameter_of
from edbatch.graph.op import Share
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.type_body import node_operands
from edbatch.memory.arenas import Arenas
from edbatch.memory.plan import Access
from edbatch.runtime.backward_tables import BackwardTables
from edbatch.runtime.derivatives import CompiledDerivative, compiled, weight
from edbatch.runtime.operand_rows import STRIDED, GradientArenas, add, gather, read_evenly
from edbatch.runtime.parameter_gradients import add_sum, add_terms
from edbatch.runtime.ran import Ran
from edbatch.runtime.saving import Saved
from edbatch.runtime.type_table import BoundType, TypeTable

SHARED = int(Access.SHARED)
_FLOAT32 = np.dtype(np.float32)


class TypeRows:
    """Of one type in one plan: what its derivative has computed, side by side; filled from the end, as batches go.

    Args:
        type: the type.
        how: its derivative.
        n: the nodes that gradients flow into.
        flat: buffer of the rows [n, how.derivative.width].
        saved: what the forward run saved, if it did.

    Attributes:
        specs: of the operands that are nodes.
        begin: of the rows filled so far.
        payload: per batch gone through, the integers of its nodes.
        chosen: per batch gone through, where its rows of what was saved begin, how many there are, and which of them
            (None: all) are of nodes that gradients flow into.
    """

    def __init__(self, type: BoundType, how: CompiledDerivative, n: int, flat: Any, saved: Saved | None) -> None:
        self.type = type
        self.how = how
        self.n = n
        self.flat = flat
        self.saved = saved
        self.specs = node_operands(type.type)
        self.begin = n
        self.payload: list[list[Any]] = []
        self.chosen: list[tuple[int, int, Any]] = []

    @cached_property
    def is_native(self) -> bool:
        """Whether compiled loops run the derivative."""
        return self.how.program is not None and self.how.program.variant().is_native

    def note(self, batch: list[int], chosen: Any, saved_begin: int, indices: np.ndarray) -> None:
        """Note that the next batch, the one before in the plan, is gone through: its rows now begin with `begin`."""
        _, _, n, _, payload, _ = batch
        self.begin -= n if chosen is None else len(chosen)
        begins = range(payload, payload + n * self.type.type.op.payload, n)
        integers = [indices[begin : begin + n] for begin in begins]
        self.payload.append(integers if chosen is None else [x[chosen] for x in integers])
        self.chosen.append((saved_begin, n, chosen))


class BackwardPlan:
    """One plan, gone through from its last batch to its first.

    Args:
        ran: the plan, and what its run has saved.
        arenas: the values.
        gradients: of the values; filled.
        table: the graph's types.
        check_nan: as of `Backward`.
    """

    def __init__(
        self,
        ran: Ran,
        arenas: Arenas,
        gradients: GradientArenas,
        table: TypeTable,
        check_nan: bool,
    ) -> None:
        self._ran = ran
        self._arenas = arenas
        self._gradients = gradients
        self._table = table
        self._pool = table.pool
        self._backend = table.backend
        self._check_nan = check_nan
        self._batches = ran.plan.batches.tolist()
        self._operands = ran.plan.operands.tolist()
        self._rows: dict[int, TypeRows] = {}

    def run(self, number: list[int], active: np.ndarray, rows: np.ndarray, operands: np.ndarray) -> None:
        """Compute the gradients of values.

        Args:
            number, rows, operands: from `reach.per_batch`.
            active: per node of the graph, whether a gradient flows into it.
        """
        ran, batches = self._ran, self._batches
        tables = BackwardTables(ran, self._arenas, self._gradients, self._table)
        left = np.bincount(ran.plan.batches[:, 0], ran.plan.batches[:, 2], len(self._table.bound)).astype(int).tolist()
        end = len(ran.nodes)
        rest: list[Callable[[], None]] = []  # what compiled loops leave to Python, in order
        for at in range(len(batches) - 1, ran.n_sources - 1, -1):
            kind, _, n, *_ = batch = batches[at]
            left[kind] -= n
            end -= n
            if not number[at]:
                continue
            type = self._table.bound[kind]
            chosen = None if number[at] == n else np.flatnonzero(active[ran.nodes[end : end + n]])
            if type.type.op.variadic:
                if chosen is None and self._can_share(type, batch, tables):
                    tables.share(type.window, batch, self._operands[batch[3]])
                else:
                    tables.leave()
                    rest.append(partial(self._back_variadic, type, batch, chosen))
                continue
            if kind not in self._rows:
                self._rows[kind] = self._type_rows(type, int(rows[kind]), int(operands[kind]), ran.saved.get(kind))
            found = self._rows[kind]
            found.note(batch, chosen, left[kind], ran.plan.indices)
            if found.how.program is None:
                continue
            read = self._operands[batch[3] : batch[3] + len(found.specs)]
            if chosen is None and found.is_native and all(map(tables.can_read, read)):
                tables.compute(found, batch, found.begin, left[kind], read)
            else:
                tables.leave()
                rest.append(partial(self._back, found, batch, chosen, found.begin, left[kind]))
        self._run_tables(tables, iter(rest))

    def _run_tables(self, tables: BackwardTables, rest: Iterator[Callable[[], None]]) -> None:
        plan, programs, backend = tables.plan(), tables.programs(), self._backend
        indices = backend.plan_indices(plan.indices) if tables.has_lists else self._ran.indices
        scratch = self._pool.acquire(programs.scratch(plan), _FLOAT32)
        windows, addresses = tables.windows(), tables.addresses()
        kept = np.zeros((len(tables.program_of), 3), np.int64)
        at, end = 0, len(plan.batches)
        while at < end:
            begin = at
            at = backend.loops.run_batches(
                at, at + 1 if self._check_nan else end, plan, indices, windows, addresses, tables.results, kept,
                programs, backend.address(scratch),
            )  # fmt: skip
            if at == begin:
                next(rest)()
                at += 1
            elif self._check_nan and (checked := tables.computed(begin)) is not None:
                self._check(*checked)
        self._pool.release(scratch)

    def _can_share(self, type: BoundType, batch: list[int], tables: BackwardTables) -> bool:
        """Whether compiled loops go back through a batch of reductions."""
        rule, operand = type.type.op.gradient, self._operands[batch[3]]
        plain_sum = isinstance(rule, Share) and rule.weight is None and not rule.divided
        return plain_sum and type.type.out.dtype == _FLOAT32 and operand[0] != SHARED and tables.can_read(operand)

    def add_to_parameters(self, number: list[int]) -> None:
        """Add what the batches have left, and the gradients of nodes that are parameters."""
        for rows in self._rows.values():
            add_terms(rows, self._backend)
        for (kind, row, n, *_), active in zip(self._batches[: self._ran.n_sources], number, strict=False):
            type = self._table.bound[kind]
            if active and type.type.op is PARAMETER:
                found = self._gradients.array(type.window)[row : row + n]
                add_sum(parameter_of(type.type.attributes[0][1]), found, self._backend)

    def release(self) -> None:
        """Give the buffers back."""
        for rows in self._rows.values():
            self._pool.release(rows.flat)

    def _type_rows(self, type: BoundType, n: int, operands: int, saved: Saved | None) -> TypeRows:
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = [bool(operands >> min(slot, 62) & 1) for slot in range(slots)]
        how = compiled(type, needed, saved is not None, self._backend)
        flat = self._pool.acquire(max(1, n * how.derivative.width), type.type.out.dtype)
        return TypeRows(type, how, n, flat, saved)

    def _back(self, rows: TypeRows, batch: list[int], chosen: Any, at: int, saved_begin: int) -> None:
        """Go back through one batch; through the nodes `chosen` of it, if not all. Its rows begin with row `at`."""
        _, row, n, first, payload, _ = batch
        type, how, width = rows.type, rows.how, rows.how.derivative.width
        m = n if chosen is None else len(chosen)
        k, kept = self._backend, None
        if chosen is not None:
            kept = k.indices(chosen.astype(np.int32))[:]
        given: list[Any] = []
        buffers: list[Any] = []
        for source, number in how.derivative.given:
            if source is Given.OPERAND:
                x = self._read(self._operands[first + number], rows.specs[number], buffers)
            elif source is Given.RESULT:
                x = self._arenas.array(type.window)[row : row + n]
            elif source is Given.SAVED:
                assert rows.saved is not None
                x = rows.saved.value(number, saved_begin, saved_begin + n)
            else:
                x = self._gradients.array(type.window)[row : row + n]
            given.append(x if kept is None or len(x) < n else k.ascontiguousarray(x[kept]))
        begins = range(payload, payload + n * type.type.op.payload, n)
        integers = [self._ran.indices[begin : begin + n] for begin in begins]
        if chosen is not None:
            integers = [x[kept] for x in integers]
        assert how.program is not None
        out = rows.flat[at * width : (at + m) * width].reshape(m, width)
        how.program(out, *given, *integers)
        self._check(out, type)
        computed, begin = rows.flat, at * width
        if chosen is not None:  # as rows of the whole batch, zero where no gradient flows
            whole = k.zeros((n, width), out.dtype)
            whole[kept] = out
            computed, begin = whole.reshape(-1), 0
        for slot, place in enumerate(how.derivative.operands):
            if place is not None:
                self._add(self._operands[first + slot], computed, begin + place.column, width, place.spec)
        for buffer in buffers:
            self._pool.release(buffer)

    def _back_variadic(self, type: BoundType, batch: list[int], chosen: Any) -> None:
        """Go back through a batch of reductions over lists: each operand gets its share."""
        _, row, n, first, _, begin = batch
        rule = type.type.op.gradient
        assert isinstance(rule, Share)
        spec, operand = type.type.out, self._operands[first]
        lengths = np.diff(self._ran.plan.indices[begin : begin + n + 1])
        owners = np.repeat(np.arange(n, dtype=np.int32), lengths)
        k = self._backend
        owner = k.indices(owners)[:]
        gradient = self._gradients.array(type.window)[row : row + n]
        program = weight(type, self._backend)
        parts = None
        buffers: list[Any] = []
        if program is not None:
            x = self._read(operand, spec, buffers)
            parts = k.empty((operand[4], *spec.shape), spec.dtype)
            program(parts, self._arenas.array(type.window)[row : row + n][owner], x)
        if rule.divided:
            total = k.empty((n, *spec.shape), spec.dtype)
            if parts is None:
                total[...] = k.from_host(lengths.astype(spec.dtype).reshape(n, *(1,) * len(spec.shape)), "C")
            else:
                k.segment_reduce(k.add, total, parts, self._ran.indices[begin : begin + n + 1])
            gradient = gradient / total
        rows = gradient[owner]
        if parts is not None:
            rows *= parts
        if chosen is not None:
            idle = np.ones(n, np.bool_)
            idle[chosen] = False
            rows[k.indices(np.flatnonzero(idle[owners]).astype(np.int32))[:]] = 0
        self._check(rows, type)
        self._add(operand, rows.reshape(-1), 0, spec.size, spec)
        for buffer in buffers:
            self._pool.release(buffer)

    def _read(self, operand: list[int], spec: Any, buffers: list[Any]) -> Any:
        if operand[0] <= STRIDED:
            return read_evenly(operand, self._arenas)
        buffers.append(self._pool.acquire(operand[4] * spec.size, spec.dtype))
        return gather(operand, self._ran, self._arenas, self._table, spec, buffers[-1])

    def _add(self, operand: list[int], source: Any, begin: int, stride: int, spec: Any) -> None:
        add(operand, self._ran, self._gradients, self._table, source, begin, stride, spec)

    def _check(self, computed: Any, type: BoundType) -> None:
        if self._check_nan:
            bad = int(self._backend.isnan(computed.reshape(len(computed), -1)).any(axis=1).sum())
            if bad:
                raise EdBatchError(f"NaN in the gradient of {type.type} ({bad} of {len(computed)} in its batch)")
