"""Cells compiled: the body of a cell as a list of kernels over a batch of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.body import Body, Value, spec_of_value
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.trace import ARGUMENT
from edbatch.memory.pool import BufferPool

# Intermediates of this many bytes stay in a core's second-level cache; a batch is cut into blocks of calls whose
# intermediates fit, but not below a number of rows that matrix products need to run at full speed.
CACHE_BYTES = 1024 * 1024
LEAST_ROWS = 128

_pool = BufferPool()


@dataclass(frozen=True)
class Step:
    """One kernel: `call(result, *operands, *payload)`."""

    node: int
    call: Callable[..., None]
    operands: tuple[Value | ParameterSpec, ...]
    payload: tuple[int, ...]
    variadic: bool
    parts: Callable[[Any], list[Any]] | None


class Program:
    """A compiled cell: `program(out, *operands, *payload)` fills `out` [calls, *row of the result].

    Every intermediate value has a part of a scratch buffer, [calls, *shape], from the step that computes it to the last
    that reads it.

    Args:
        body: what to compute.
        columns: per output, where it begins in a row of the result.
        bind: from a node's type to its kernel.
        parts_of: from a type whose op only places operands to the parts of its result; None for other types.
    """

    def __init__(
        self,
        body: Body,
        columns: tuple[int, ...],
        bind: Callable[[Any], Callable[..., None]],
        parts_of: Callable[[Any], Callable[[Any], list[Any]] | None],
        backend: Any,
    ) -> None:
        self._body = body
        self._backend = backend
        self._steps = [
            Step(
                number, bind(node.type), self._operands(node), node.payload, node.type.op.variadic, parts_of(node.type)
            )
            for number, node in enumerate(body.nodes)
            if node.type.op.kind is not Kind.SOURCE
        ]
        # A node whose value is returned as it is computes it right there, the others in the scratch matrix.
        self._in_result: dict[int, int] = {}
        self._copied: list[tuple[int, Value]] = []
        for column, value in zip(columns, body.outputs, strict=True):
            computed = body.nodes[value.node].type.op.kind is not Kind.SOURCE
            if value.view is None and computed and value.node not in self._in_result:
                self._in_result[value.node] = column
            elif self._in_result.get(value.node) != column or value.view is not None:
                self._copied.append((column, value))
        self._scratch, self._width = self._place()
        self._constants = {
            number: self._constant(number)
            for number, node in enumerate(body.nodes)
            if node.type.op.kind is Kind.SOURCE and node.type.op is not ARGUMENT and node.type.op.name != "parameter"
        }

    def __call__(self, out: Any, *given: Any) -> None:
        """Compute a batch of calls: `given` are the arguments' rows, then the integers."""
        body = self._body
        n_arguments = len(body.arguments)
        arguments, payload = given[:n_arguments], given[n_arguments:]
        n = len(out)
        rows = out.reshape(n, -1)
        itemsize = out.dtype.itemsize
        block = max(LEAST_ROWS, CACHE_BYTES // max(1, (self._width + rows.shape[1]) * itemsize))
        # Blocks of equal size: the last one should not be small.
        block = -(-n // -(-n // block))
        buffer = _pool.acquire(max(1, block * self._width), out.dtype)
        parameters = {
            operand: parameter_array(operand)[None]
            for step in self._steps
            for operand in step.operands
            if isinstance(operand, ParameterSpec)
        }
        fixed = dict(self._constants)
        for number, node in enumerate(body.nodes):
            if node.type.op.name == "parameter":
                ((_, spec),) = node.type.attributes
                fixed[number] = parameter_array(spec)[None]
        for begin in range(0, n, block):
            end = min(n, begin + block)
            m = end - begin
            arrays: dict[int, Any] = dict(fixed)
            for number, array in enumerate(arguments):
                arrays[number] = array if len(array) == 1 else array[begin:end]
            for number, place in self._scratch.items():
                spec = body.nodes[number].type.out
                arrays[number] = buffer[m * place : m * (place + spec.size)].reshape(m, *spec.shape)
            for number, column in self._in_result.items():
                spec = body.nodes[number].type.out
                arrays[number] = rows[begin:end, column : column + spec.size].reshape(m, *spec.shape)
            for step in self._steps:
                self._run(step, arrays, parameters, [x[begin:end] for x in payload], m)
            for column, value in self._copied:
                spec = spec_of_value(body, value)
                target = rows[begin:end, column : column + spec.size].reshape(m, *spec.shape)
                self._backend.copyto(target, _seen(arrays, value))
        _pool.release(buffer)

    def _run(self, step: Step, arrays: dict[int, Any], parameters: dict[Any, Any], payload: list[Any], m: int) -> None:
        out = arrays[step.node]
        operands = [
            parameters[operand] if isinstance(operand, ParameterSpec) else _seen(arrays, operand)
            for operand in step.operands
        ]
        if step.parts is not None:
            for part, operand in zip(step.parts(out), operands, strict=True):
                self._backend.copyto(part, operand)
            return
        if step.variadic:
            k = len(operands)
            shape = out.shape[1:]
            rows = np.stack([np.broadcast_to(x, (m, *shape)) for x in operands], axis=1).reshape(m * k, *shape)
            step.call(out, rows, np.arange(0, m * k + 1, k))
            return
        integers = [payload[-1 - x] if x < 0 else np.full(m, x, np.int32) for x in step.payload]
        step.call(out, *operands, *integers)

    def _place(self) -> tuple[dict[int, int], int]:
        """Where each intermediate value begins in the scratch buffer, and its length, in entries of one call.

        A place is used again for a value of the same size once its value has been read for the last time.
        """
        last = {value.node: len(self._steps) for _, value in self._copied}
        for number, step in enumerate(self._steps):
            for operand in step.operands:
                if isinstance(operand, Value):
                    last[operand.node] = max(number, last.get(operand.node, 0))
        places: dict[int, int] = {}
        free: dict[int, list[int]] = {}
        width = 0
        for number, step in enumerate(self._steps):
            size = self._body.nodes[step.node].type.out.size
            if step.node not in self._in_result:
                if free.get(size):
                    places[step.node] = free[size].pop()
                else:
                    places[step.node] = width
                    width += size
            for node in {operand.node for operand in step.operands if isinstance(operand, Value)}:
                if last[node] == number and node in places:
                    free.setdefault(self._body.nodes[node].type.out.size, []).append(places[node])
        return places, width

    def _operands(self, node: Any) -> tuple[Value | ParameterSpec, ...]:
        values = iter(node.operands)
        if node.type.op.variadic:
            return tuple(values)
        return tuple(operand if isinstance(operand, ParameterSpec) else next(values) for operand in node.type.operands)

    def _constant(self, number: int) -> Any:
        node = self._body.nodes[number]
        spec = node.type.out
        if node.value is not None:
            return np.asarray(node.value, spec.dtype)[None]
        return np.full((1, *spec.shape), 1.0 if node.type.op.name == "ones" else 0.0, spec.dtype)


def _seen(arrays: dict[int, Any], value: Value) -> Any:
    array = arrays[value.node]
    return array if value.view is None else value.view.look(array)
