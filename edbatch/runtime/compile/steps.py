"""What a step of a program is; the steps that copy, and those of matrix products, which a BLAS computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from edbatch.graph.cell.body import Body, Node, Value, spec_of_value
from edbatch.graph.cell.passes.fuse import is_contiguous
from edbatch.graph.cell.passes.rows_for_steps import PRODUCTS, parameter_matrix
from edbatch.kernels.program import LEFT, MULTIPLY, RIGHT, TRANSPOSED, Step
from edbatch.kernels.row_kernels import copy_rows


class CellStep(NamedTuple):
    """A step that reads operands and computes nodes; `encode`: makes its record, given the `Link` that knows places."""

    encode: Callable[[Any], Step]
    operands: tuple[Value, ...]
    computes: tuple[int, ...]


def copy_step(value: Value, width: int, column: int) -> CellStep:
    """A copy to a column of the cell's result."""

    def encode(link: Any) -> Step:
        return link.kernel_step(copy_rows(link.dtype), [width], [link.at(value), link.result(column)], [])

    return CellStep(encode, (value,), ())


def product_steps(body: Body, number: int) -> list[CellStep]:
    """The steps of a product."""
    node = body.nodes[number]
    assert node.type.op.name in PRODUCTS, node.type
    return _of_rows(body, number, node) or _of_each(body, number, node)


def _of_rows(body: Body, number: int, node: Node) -> list[CellStep] | None:
    """A parameter times a vector, from either side."""
    from_left = parameter_matrix(body.nodes, node.operands[0]) is not None
    weight, x = node.operands if from_left else node.operands[::-1]
    found = parameter_matrix(body.nodes, weight)
    if found is None or found[1] or len(spec_of_value(body, x).shape) != 1 or not is_contiguous(body.nodes, x):
        return None
    size, out_size = spec_of_value(body, x).size, node.type.out.size

    def encode(link: Any) -> Step:
        slot, distance, transposed = link.matrix(found[0], from_left)
        (row, column), (out, out_column) = link.at(x), link.at(Value(number))
        places = row, column, slot, 0, out, out_column
        return Step(MULTIPLY, *places, 1, size, out_size, distance, RIGHT | transposed)

    return [CellStep(encode, (weight, x), (number,))]


def _of_each(body: Body, number: int, node: Node) -> list[CellStep]:
    """A product per call, or several, at most one operand a parameter: `rows_for_steps` has seen to that."""
    a, b = node.operands
    is_stack = node.type.op.name == "matmul_stack"
    matrices = [None if is_stack else parameter_matrix(body.nodes, x) for x in (a, b)]
    assert not all(matrices)
    rows = [x for matrix, x in zip(matrices, (a, b), strict=True) if matrix is None]
    assert is_stack or all(is_contiguous(body.nodes, x) for x in rows)
    left, right = (spec.shape for spec in node.type.operands)
    count, x_step, w_step = 1, 0, 0
    if is_stack:
        count = node.type.out.shape[0]
        x_step, w_step = (math.prod(shape[1:]) if shape[0] > 1 else 0 for shape in (left, right))
        left, right = left[1:], right[1:]
    m, k, n = left[0] if len(left) == 2 else 1, right[0], right[1] if len(right) == 2 else 1

    def encode(link: Any) -> Step:
        distance = flags = 0
        for matrix, side in zip(matrices, (LEFT, RIGHT), strict=True):
            if matrix is not None:
                _, distance, turned = link.matrix(matrix[0], from_left=False)
                flags = side + (turned ^ (TRANSPOSED * matrix[1]))
        (x, at), (w, w_at), (out, out_at) = map(link.at, (a, b, Value(number)))
        return Step(MULTIPLY, x, at, w, w_at, out, out_at, m, k, n, distance, flags, count, x_step, w_step)

    return [CellStep(encode, (a, b), (number,))]
