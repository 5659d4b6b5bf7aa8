"""The steps of a cell's body, in order: what the interpreter runs, and what is left to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value, operands_of
from edbatch.graph.cell.passes.fuse import Run, alone, fuse, is_contiguous
from edbatch.graph.op import Kind, as_program
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import CopyStep, Step
from edbatch.memory.plan.windows import contiguous_columns

Operand = Value | ParameterSpec


@dataclass(frozen=True)
class Native:
    """A step of the interpreter.

    Args:
        encode: makes its record, given the `Link` that knows where values lie.
        operands: what it reads.
        computes: nodes whose values it writes.
    """

    encode: Callable[[Any], Step]
    operands: tuple[Operand, ...]
    computes: tuple[int, ...]


@dataclass(frozen=True)
class Python:
    """One node: `call(result, *operands, *payload)`; or, with `parts`, its operands copied to parts of the result.

    Args:
        node: of the body; None: `call` copies its operand to `column` of the cell's result.
    """

    node: int | None
    call: Callable[..., None]
    operands: tuple[Operand, ...]
    payload: tuple[int, ...] = ()
    variadic: bool = False
    parts: Callable[[Any], list[Any]] | None = None
    column: int = 0

    @property
    def computes(self) -> tuple[int, ...]:
        """Nodes whose values it writes."""
        return () if self.node is None else (self.node,)


CellStep = Native | Python
PartsOf = Callable[[Any], Callable[[Any], list[Any]] | None]


def steps_of(
    body: Body,
    fused: bool,
    in_result: dict[int, int],
    homes: dict[int, tuple[int, int]],
    bind: Callable[[Any], Callable[..., None]],
    parts_of: PartsOf,
    backend: Any,
) -> list[CellStep]:
    """The steps that compute every node.

    Args:
        fused: whether runs of element-wise nodes become one kernel.
        in_result: nodes computed right in the cell's result, and their column there.
        homes: see `cell_places.homes_of`.
        bind, parts_of: make a single node's kernel from its type.
        backend: what computes.
    """
    from edbatch.runtime.compile.call_steps import call_steps
    from edbatch.runtime.compile.fused_steps import fused_step
    from edbatch.runtime.compile.native_steps import native_step
    from edbatch.runtime.compile.placed_steps import placed_steps

    computed: list[Run | int] = [
        number for number, node in enumerate(body.nodes) if node.type.op.kind is not Kind.SOURCE
    ]
    order = fuse(body) if fused else computed
    steps: list[CellStep] = []
    for item in order:
        if isinstance(item, Run):
            steps.append(fused_step(body, item, in_result, homes))
            continue
        node = body.nodes[item]
        if node.type.op.forward is as_program:
            steps.append(fused_step(body, alone(body, item), in_result, homes))
            continue
        columns = columns_of(body, node, parts_of)
        if columns is not None:
            steps += [
                copy_step(operand, width, item, column)
                for operand, (column, width) in zip(operands_of(node), columns, strict=True)
                if not (isinstance(operand, Value) and homes.get(operand.node) == (item, column))
            ]
        elif (native := native_step(body, item)) is not None:
            steps += native
        elif (placed := placed_steps(body, item, parts_of)) is not None:
            steps += placed
        elif (calls := call_steps(body, item, parts_of, backend)) is not None:
            steps += calls
        else:
            call, parts = bind(node.type), parts_of(node.type)
            steps.append(Python(item, call, operands_of(node), node.payload, node.type.op.variadic, parts))
    return steps


def is_row(body: Body, operand: Operand) -> bool:
    """Whether the interpreter finds an operand's entries side by side."""
    if isinstance(operand, ParameterSpec):
        return len(operand.shape) < 2  # a matrix may be stored by columns
    return is_contiguous(body, operand)


def columns_of(body: Body, node: Node, parts_of: PartsOf) -> list[tuple[int, int]] | None:
    """Of a node that only puts its operands side by side: where each goes, (column, width); None of any other."""
    parts = parts_of(node.type)
    if parts is None or not all(is_row(body, operand) for operand in operands_of(node)):
        return None
    whole = np.empty((2, *node.type.out.shape), np.float32)
    columns = [contiguous_columns(whole, part) for part in parts(whole)]
    return columns if all(width for _, width in columns) else None


def copy_step(operand: Operand, width: int, node: int | None, column: int) -> Native:
    """A copy to a column of a node's value, or (None) of the cell's result."""

    def encode(link: Any) -> CopyStep:
        x, x_column = link.at(operand)
        out, at = link.result(column) if node is None else link.at(Value(node))
        return CopyStep(x, x_column, out, at if node is None else at + column, width)

    return Native(encode, (operand,), () if node is None else (node,))
