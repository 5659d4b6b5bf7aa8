"""Cells compiled: the body of a cell as steps over a batch of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.graph.cell.body import Body, Value, joined, spec_of_value
from edbatch.graph.cell.passes import open_lists, rows_for_steps
from edbatch.graph.cell.passes.entries import in_order
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.model.parameters import LookupParameters
from edbatch.graph.op import Kind
from edbatch.graph.options import current_options
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import Move
from edbatch.kernels.tables import Integers, Rows, Slots, block_rows, place_slots
from edbatch.memory.plan.pool import pool_of
from edbatch.runtime.compile.call_steps import copy_any
from edbatch.runtime.compile.link import Link, Tables
from edbatch.runtime.compile.places import homes_of, place_values
from edbatch.runtime.compile.steps import Python, copy_step, is_row, steps_of

# A batch is cut into blocks of calls whose intermediates, of this many bytes, stay in a core's second-level cache.
CACHE_BYTES = 1024 * 1024
# But a product of a block brings its weights into another order first, unless they are small, and that has to be little
# beside the product. Measured for TreeLSTM, batch 256, in ms: hidden 512: 128 rows 437, 512 rows 383, 1024 rows 376;
# hidden 256: 99, 92, 96; hidden 64: 18.9, 19.1, 19.7.
ENTRIES_PER_ROW = 640
LEAST_ROWS, MOST_ROWS = 128, 1024


class Program:
    """A compiled cell: `program(out, *operands, *payload)` fills `out` [calls, *row of the result].

    Every intermediate value has a part of a scratch buffer, [calls, *shape], from the step that computes it to the last
    that reads it.

    Args:
        body: what to compute.
        columns: per output, where it begins in a row of the result.
        bind, parts_of: see `cell_steps.steps_of`.
        backend: what kernels compute with.
    """

    def __init__(
        self,
        body: Body,
        columns: tuple[int, ...],
        bind: Callable[[Any], Callable[..., None]],
        parts_of: Callable[[Any], Callable[[Any], list[Any]] | None],
        backend: Any,
    ) -> None:
        self._compile = (body, columns, bind, parts_of, backend)
        self._variants: dict[bool, Variant] = {}

    def variant(self) -> Variant:
        """The program under the options in force."""
        fuse = current_options().fuse
        if fuse not in self._variants:
            self._variants[fuse] = Variant(*self._compile, fuse)
        return self._variants[fuse]

    def __call__(self, out: Any, *given: Any) -> None:
        """Compute a batch of calls: `given` are the arguments' rows, then the integers."""
        self.variant().run(out, given)


class Variant:
    """A program with or without fused kernels.

    Attributes:
        width, element_width: entries of scratch per call, and per element of its list: it reads none.
        is_native: whether the interpreter runs it without coming back to Python.
    """

    element_width = 0

    def __init__(
        self, body: Body, columns: tuple[int, ...], bind: Any, parts_of: Any, backend: Any, fuse: bool
    ) -> None:
        self._body = body = rows_for_steps(open_lists(body))
        self._backend = backend
        self._pool = pool_of(backend)
        # A value that is returned as it is computed is computed right there; the others are copied at the end.
        in_result: dict[int, int] = {}
        copied: list[tuple[int, Value]] = []
        for column, value in joined(body, zip(columns, body.outputs, strict=True)):
            computed = body.nodes[value.node].type.op.kind is not Kind.SOURCE
            whole = in_order(value.view)
            if whole and computed and value.node not in in_result:
                in_result[value.node] = column
            elif in_result.get(value.node) != column or not whole:
                copied.append((column, value))
        homes = homes_of(body, fuse, in_result, parts_of, backend)
        self._steps = steps_of(body, fuse, in_result, homes, bind, parts_of, backend)
        for column, value in copied:
            if is_row(body, value):
                self._steps.append(copy_step(value, spec_of_value(body, value).size, None, column))
            else:
                python = Python(None, backend.copyto, (value,), column=column)
                self._steps.append(copy_any(body, value, column, backend) or python)
        places, self.width = place_values(body, self._steps, in_result, homes)
        self.is_native = not any(isinstance(step, Python) for step in self._steps)
        out_width = sum({c: spec_of_value(body, v).size for c, v in zip(columns, body.outputs, strict=True)}.values())
        weights = [
            operand.size
            for step in self._steps
            for operand in step.operands
            if isinstance(operand, ParameterSpec) and len(operand.shape) == 2 and not is_table(operand)
        ]
        least = min(MOST_ROWS, max(LEAST_ROWS, max(weights) // ENTRIES_PER_ROW)) if weights else 1
        width = self.width + out_width
        in_bytes = max(1, body.dtype.itemsize * width)
        rows = backend.calls_at_once(least, CACHE_BYTES // in_bytes, in_bytes)
        self._link = Link(body, self._steps, in_result, places, homes, rows, backend)
        self._tables: Tables | None = None

    def tables(self) -> Tables:
        """What the interpreter reads; made anew where the storage of a parameter has changed.

        Raises:
            EdBatchError: a parameter is gone.
        """
        if self._tables is None or not self._tables.is_valid():
            self._tables = self._link.tables()
        return self._tables

    def run(self, out: Any, given: tuple[Any, ...]) -> None:
        """See `Program.__call__`."""
        body, tables, backend = self._body, self.tables(), self._backend
        arguments, payload = given[: len(body.arguments)], given[len(body.arguments) :]
        n = len(out)
        result = out.reshape(n, -1)
        programs = tables.programs
        block = block_rows(n, int(programs.extents[0]["calls"]))
        buffer = self._pool.acquire(max(1, block * self.width), out.dtype)
        slots = Slots(*np.empty((3, len(programs.slots)), np.int64))
        integers = payload[0] if len(payload) == 1 else backend.concatenate([backend.empty(0, np.int32), *payload])
        scratch, target = backend.address(buffer), Rows(backend.address(result), *2 * result.strides[:1])
        rows = [backend.ascontiguousarray(x) if not x[0].flags.c_contiguous else x for x in arguments]
        for begin in range(0, n, block):
            m = min(block, n - begin)
            views: dict[int, Any] | None = None
            here = target._replace(address=target.address + begin * target.stride)
            place_slots(programs, 0, slots, scratch, here, m, 0)
            for (slot, entries, move, _), x in zip(programs.arguments.tolist(), rows, strict=True):
                stride, width = 0 if len(x) == 1 else x.strides[0], x.itemsize * entries
                source = backend.address(x) + begin * stride
                if move == Move.ALWAYS or (move == Move.IF_NOT_ROWS and stride < width):
                    to = slots.addresses[slot], slots.strides[slot]
                    backend.loops.copy_rows(m, source, stride, *to, width)
                elif move != Move.UNUSED:
                    slots.addresses[slot], slots.strides[slot] = source, stride
            at = 0
            while at < len(self._steps):
                step = self._steps[at]
                if isinstance(step, Python):
                    if views is None:
                        views = self._views(tables, arguments, buffer, result, begin, m)
                    _run_python(step, views, [x[begin : begin + m] for x in payload], m, backend)
                    at += 1
                    continue
                at = backend.loops.run_steps(programs, at, slots, Integers(integers, begin, n), m)
        self._pool.release(buffer)

    def _views(
        self, tables: Tables, arguments: tuple[Any, ...], buffer: Any, result: Any, begin: int, m: int
    ) -> dict[Any, Any]:
        """Every value as an array [m or 1, *shape]; under -1 the block's rows of the result."""
        body, link = self._body, self._link
        views: dict[Any, Any] = dict(tables.fixed)
        views[-1] = result[begin : begin + m]
        for number, x in enumerate(arguments):
            views[number] = x if len(x) == 1 else x[begin : begin + m]
        for node, place in link.places.items():
            if body.nodes[node].type.op is not ARGUMENT:
                spec = body.nodes[node].type.out
                whole = buffer[m * place.begin : m * (place.begin + place.stride)].reshape(m, place.stride)
                views[node] = whole[:, place.column : place.column + spec.size].reshape(m, *spec.shape)
        for node, column in link.in_result.items():
            spec = body.nodes[node].type.out
            views[node] = views[-1][:, column : column + spec.size].reshape(m, *spec.shape)
        return views


def _run_python(step: Python, views: dict[Any, Any], payload: list[Any], m: int, k: Any) -> None:
    operands = [views[x] if isinstance(x, ParameterSpec) else _seen(views, x) for x in step.operands]
    if step.node is None:
        (value,) = operands
        size = value[0].size
        step.call(views[-1][:, step.column : step.column + size].reshape(m, *value.shape[1:]), value)
        return
    out = views[step.node]
    if step.parts is not None:
        for part, operand in zip(step.parts(out), operands, strict=True):
            part[...] = operand
    elif step.variadic:
        count, shape = len(operands), out.shape[1:]
        rows = k.stack([k.broadcast_to(x, (m, *shape)) for x in operands], axis=1).reshape(m * count, *shape)
        step.call(out, rows, k.arange(0, m * count + 1, count, dtype=np.int32))
    else:
        integers = [payload[-1 - x] if x < 0 else k.full(m, x, np.int32) for x in step.payload]
        step.call(out, *operands, *integers)


def _seen(views: dict[Any, Any], value: Value) -> Any:
    array = views[value.node]
    return array if value.view is None else value.view.look(array)


def is_table(spec: ParameterSpec) -> bool:
    """Whether it is looked up in."""
    return isinstance(spec.parameter(), LookupParameters)
