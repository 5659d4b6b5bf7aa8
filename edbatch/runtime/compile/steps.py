"""What a step of a program is, and the steps that copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value, operands_of
from edbatch.graph.cell.passes.fuse import is_contiguous
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.node_type import NodeType
from edbatch.graph.ops.place import CONCATENATE, STACK
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


def is_row(body: Body, operand: Operand) -> bool:
    """Whether the interpreter finds an operand's entries side by side."""
    if isinstance(operand, ParameterSpec):
        return len(operand.shape) < 2  # a matrix may be stored by columns
    return is_contiguous(body.nodes, operand)


def columns_of(body: Body, node: Node) -> list[tuple[int, int]] | None:
    """Of a node that only puts its operands side by side: where each goes, (column, width); None of any other."""
    if node.type.op.places is None or not all(is_row(body, operand) for operand in operands_of(node)):
        return None
    return columns_of_operands(node.type)


def columns_of_operands(type: NodeType) -> list[tuple[int, int]] | None:
    """The same, where operands lie row by row; None: some go to entries that do not follow one another, too."""
    if type.op in (CONCATENATE, STACK) and type.attributes == (("axis", 0),):
        widths = [operand.size for operand in type.operands]
        return list(zip(accumulate(widths, initial=0), widths, strict=False))
    parts = places_of(type)
    if parts is None:
        return None
    whole = np.empty((2, *type.out.shape), np.float32)
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
