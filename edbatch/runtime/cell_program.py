"""Cells compiled: the body of a cell as kernels over a batch of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.graph.body import Body, Value, spec_of_value
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.options import current_options
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.trace import ARGUMENT
from edbatch.memory.pool import BufferPool
from edbatch.runtime.cell_steps import Fused, Single, place_values, steps_of

# Intermediates of this many bytes stay in a core's second-level cache; a batch is cut into blocks of calls whose
# intermediates fit, but not below a number of rows that matrix products need to run at full speed.
CACHE_BYTES = 1024 * 1024
LEAST_ROWS = 128

_pool = BufferPool()

# Rows in memory: a flat array, where the first row begins, the distance between rows.
Rows = tuple[Any, int, int]


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
        self._variants: dict[bool, _Variant] = {}

    def __call__(self, out: Any, *given: Any) -> None:
        """Compute a batch of calls: `given` are the arguments' rows, then the integers."""
        fuse = current_options().fuse
        if fuse not in self._variants:
            self._variants[fuse] = _Variant(*self._compile, fuse)
        self._variants[fuse].run(out, given)


class _Variant:
    """A program with or without fused kernels."""

    def __init__(
        self, body: Body, columns: tuple[int, ...], bind: Any, parts_of: Any, backend: Any, fuse: bool
    ) -> None:
        self._body = body
        self._backend = backend
        # A value that is returned as it is computed is computed right there; the others are copied at the end.
        self._in_result: dict[int, int] = {}
        self._copied: list[tuple[int, Value]] = []
        for column, value in zip(columns, body.outputs, strict=True):
            computed = body.nodes[value.node].type.op.kind is not Kind.SOURCE
            if value.view is None and computed and value.node not in self._in_result:
                self._in_result[value.node] = column
            elif self._in_result.get(value.node) != column or value.view is not None:
                self._copied.append((column, value))
        self._steps = steps_of(body, fuse, self._in_result, bind, parts_of)
        self._scratch, self._width = place_values(
            body, self._steps, self._in_result, {value.node for _, value in self._copied}
        )
        operands = [operand for step in self._steps for operand in step.operands]
        self._parameters = {operand for operand in operands if isinstance(operand, ParameterSpec)}
        self._constants = {
            number: _constant(node)
            for number, node in enumerate(body.nodes)
            if node.type.op.kind is Kind.SOURCE and node.type.op is not ARGUMENT and node.type.op.name != "parameter"
        }
        self._parameter_nodes = {
            number: node.type.attributes[0][1]
            for number, node in enumerate(body.nodes)
            if node.type.op.name == "parameter"
        }
        # Which values are needed as arrays; what only fused kernels touch is not.
        singles = [step for step in self._steps if isinstance(step, Single)]
        as_arrays = {step.node for step in singles} | {value.node for _, value in self._copied}
        as_arrays |= {x.node for step in singles for x in step.operands if isinstance(x, Value)}
        self._scratch_arrays = [
            (node, place, body.nodes[node].type.out) for node, place in self._scratch.items() if node in as_arrays
        ]
        self._result_arrays = [
            (node, column, body.nodes[node].type.out) for node, column in self._in_result.items() if node in as_arrays
        ]
        # What fused kernels read of the arguments and constants.
        self._as_rows = {place.of for step in self._steps if isinstance(step, Fused) for place in step.places}

    def run(self, out: Any, given: tuple[Any, ...]) -> None:
        """See `Program.__call__`."""
        body = self._body
        arguments, payload = given[: len(body.arguments)], given[len(body.arguments) :]
        n = len(out)
        result = out.reshape(n, -1)
        per_call = (self._width + result.shape[1]) * out.dtype.itemsize
        block = max(LEAST_ROWS, CACHE_BYTES // max(1, per_call))
        block = -(-n // -(-n // block))  # of equal size: the last one should not be small
        buffer = _pool.acquire(max(1, block * self._width), out.dtype)
        parameters = {spec: parameter_array(spec)[None] for spec in self._parameters}
        fixed = {**self._constants, **{k: parameter_array(spec)[None] for k, spec in self._parameter_nodes.items()}}
        sources = [*enumerate(arguments), *fixed.items(), *parameters.items()]
        given_rows = {of: rows_of(array) for of, array in sources if of in self._as_rows}
        result_rows = rows_of(result)
        for begin in range(0, n, block):
            m = min(n, begin + block) - begin
            arrays: dict[int, Any] = dict(fixed)
            for number, array in enumerate(arguments):
                arrays[number] = array if len(array) == 1 else array[begin : begin + m]
            for number, place, spec in self._scratch_arrays:
                arrays[number] = buffer[m * place : m * (place + spec.size)].reshape(m, *spec.shape)
            for number, column, spec in self._result_arrays:
                arrays[number] = result[begin : begin + m, column : column + spec.size].reshape(m, *spec.shape)
            for step in self._steps:
                if isinstance(step, Single):
                    self._run_single(step, arrays, parameters, [x[begin : begin + m] for x in payload], m)
                    continue
                places: list[Any] = []
                for source in step.places:
                    flat, start, stride = (
                        result_rows
                        if source.in_result
                        else given_rows.get(source.of) or self._computed_rows(source.of, buffer, m, result_rows)
                    )
                    if flat is not buffer:  # of all calls, not of this block
                        start += begin * stride
                    places += (flat, start + source.offset, stride)
                step.kernel(m, step.size, *places)
            for column, value in self._copied:
                spec = spec_of_value(body, value)
                target = result[begin : begin + m, column : column + spec.size].reshape(m, *spec.shape)
                self._backend.copyto(target, _seen(arrays, value))
        _pool.release(buffer)

    def _computed_rows(self, node: Any, buffer: Any, m: int, result: Rows) -> Rows:
        """Where a computed value lies."""
        place = self._scratch.get(node)
        if place is None:
            flat, start, stride = result
            return flat, start + self._in_result[node], stride
        return buffer, m * place, self._body.nodes[node].type.out.size

    def _run_single(
        self, step: Single, arrays: dict[int, Any], parameters: dict[Any, Any], payload: list[Any], m: int
    ) -> None:
        out = arrays[step.node]
        operands = [
            parameters[operand] if isinstance(operand, ParameterSpec) else _seen(arrays, operand)
            for operand in step.operands
        ]
        if step.parts is not None:
            for part, operand in zip(step.parts(out), operands, strict=True):
                self._backend.copyto(part, operand)
        elif step.variadic:
            k, shape = len(operands), out.shape[1:]
            rows = np.stack([np.broadcast_to(x, (m, *shape)) for x in operands], axis=1).reshape(m * k, *shape)
            step.call(out, rows, np.arange(0, m * k + 1, k))
        else:
            integers = [payload[-1 - x] if x < 0 else np.full(m, x, np.int32) for x in step.payload]
            step.call(out, *operands, *integers)


def rows_of(array: Any) -> Rows:
    """Where the rows of an array lie; copied side by side if the entries of a row do not lie so."""
    base = array.base if array.base is not None else array
    if base.ndim != 1 or base.dtype != array.dtype or not array[0].flags.c_contiguous:
        base = array = np.ascontiguousarray(array)
        base = array.reshape(-1)
    start = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // array.itemsize
    return base, start, 0 if len(array) == 1 else array.strides[0] // array.itemsize


def _constant(node: Any) -> Any:
    spec = node.type.out
    if node.value is not None:
        return np.asarray(node.value, spec.dtype)[None]
    return np.full((1, *spec.shape), 1.0 if node.type.op.name == "ones" else 0.0, spec.dtype)


def _seen(arrays: dict[int, Any], value: Value) -> Any:
    array = arrays[value.node]
    return array if value.view is None else value.view.look(array)
