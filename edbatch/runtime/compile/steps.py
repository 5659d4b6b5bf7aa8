"""The steps of a cell's body, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value, operands_of
from edbatch.graph.cell.passes.fuse import Run, alone, fuse, is_contiguous, is_fusible
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import KernelStep, Step
from edbatch.kernels.row_kernels import copy_rows
from edbatch.memory.plan.windows import contiguous_columns

Operand = Value | ParameterSpec


@dataclass(frozen=True)
class CellStep:
    """A step of a program.

    Args:
        encode: makes its record, given the `Link` that knows where values lie.
        operands: what it reads.
        computes: nodes whose values it writes.
    """

    encode: Callable[[Any], Step]
    operands: tuple[Operand, ...]
    computes: tuple[int, ...]


def steps_of(body: Body, fused: bool, in_result: dict[int, int], homes: dict[int, tuple[int, int]]) -> list[CellStep]:
    """The steps that compute every node.

    Args:
        fused: whether runs of nodes become one kernel; else each node has one of its own.
        in_result: nodes computed right in the cell's result, and their column there.
        homes: see `cell_places.homes_of`.
    """
    from edbatch.runtime.compile.fused_steps import fused_step
    from edbatch.runtime.compile.indexed_steps import indexed_steps
    from edbatch.runtime.compile.placed_steps import placed_steps
    from edbatch.runtime.compile.product_steps import product_steps

    computed: list[Run | int] = [
        number for number, node in enumerate(body.nodes) if node.type.op.kind is not Kind.SOURCE
    ]
    steps: list[CellStep] = []
    for item in fuse(body) if fused else computed:
        if isinstance(item, Run):
            steps.append(fused_step(body, item, in_result, homes))
            continue
        node = body.nodes[item]
        columns = columns_of(body, node)
        if is_fusible(node):
            steps.append(fused_step(body, alone(body, item), in_result, homes))
        elif columns is not None:
            steps += [
                copy_step(operand, width, item, column)
                for operand, (column, width) in zip(operands_of(node), columns, strict=True)
                if not (isinstance(operand, Value) and homes.get(operand.node) == (item, column))
            ]
        else:
            steps += placed_steps(body, item) or indexed_steps(body, item) or product_steps(body, item)
    return steps


def is_row(body: Body, operand: Operand) -> bool:
    """Whether the interpreter finds an operand's entries side by side."""
    if isinstance(operand, ParameterSpec):
        return len(operand.shape) < 2  # a matrix may be stored by columns
    return is_contiguous(body, operand)


def columns_of(body: Body, node: Node) -> list[tuple[int, int]] | None:
    """Of a node that only puts its operands side by side: where each goes, (column, width); None of any other."""
    parts = places_of(node.type)
    if parts is None or not all(is_row(body, operand) for operand in operands_of(node)):
        return None
    whole = np.empty((2, *node.type.out.shape), np.float32)
    columns = [contiguous_columns(whole, part) for part in parts(whole)]
    return columns if all(width for _, width in columns) else None


def copy_step(operand: Operand, width: int, node: int | None, column: int) -> CellStep:
    """A copy to a column of a node's value, or (None) of the cell's result."""

    def encode(link: Any) -> KernelStep:
        out, at = link.result(column) if node is None else link.at(Value(node))
        places = [link.at(operand), (out, at if node is None else at + column)]
        step: KernelStep = link.kernel_step(copy_rows(link.dtype), [width], places, [])
        return step

    return CellStep(encode, (operand,), () if node is None else (node,))
