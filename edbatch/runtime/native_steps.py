"""Which nodes the interpreter computes itself, beside fused kernels and copies: products, look-ups, softmax."""

from __future__ import annotations

from typing import Any

from edbatch.graph.body import Body, Node, Value, operands_of, spec_of_value
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import ADD, LEFT, RIGHT, KernelStep, LookUp, Multiply, MultiplyEach
from edbatch.kernels.row_kernels import softmax
from edbatch.runtime.cell_steps import Native, copy_step, is_row


def native_step(body: Body, number: int) -> list[Native] | None:
    """The interpreter's steps for a node; None if it has none."""
    node = body.nodes[number]
    make = MAKERS.get(node.type.op.name)
    return None if make is None else make(body, number, node)


def _matmul(body: Body, number: int, node: Node) -> list[Native] | None:
    return _product(body, number, node) or _products(body, number, node)


def _product(body: Body, number: int, node: Node) -> list[Native] | None:
    """A parameter times a vector, from either side, perhaps with a bias."""
    operands = operands_of(node)
    from_left = isinstance(operands[0], ParameterSpec)
    weight, x = operands[:2] if from_left else operands[1::-1]
    bias = operands[2:]
    if (
        not isinstance(weight, ParameterSpec)
        or not isinstance(x, Value)
        or len(weight.shape) != 2
        or len(spec_of_value(body, x).shape) != 1
        or len(node.type.out.shape) != 1
        or 0 in weight.shape  # a BLAS refuses these
        or not is_row(body, x)
        or not all(is_row(body, operand) for operand in bias)
    ):
        return None
    size, out_size = spec_of_value(body, x).size, node.type.out.size

    def encode(link: Any) -> Multiply:
        slot, distance, transposed = link.matrix(weight, from_left)
        flags = transposed + ADD * len(bias)
        (row, column), (out, out_column) = link.at(x), link.at(Value(number))
        return Multiply(row, column, slot, size, out_size, distance, flags, out, out_column)

    # With a bias the product is added to it.
    return [*(copy_step(operand, out_size, number, 0) for operand in bias), Native(encode, (weight, x), (number,))]


def _products(body: Body, number: int, node: Node) -> list[Native] | None:
    """A product per call, at most one operand a parameter."""
    a, b = operands_of(node)
    matrices = [x for x in (a, b) if isinstance(x, ParameterSpec)]
    if (
        len(matrices) == 2
        or any(len(x.shape) != 2 for x in matrices)
        or not all(isinstance(x, ParameterSpec) or is_row(body, x) for x in (a, b))
    ):
        return None
    left, right = (spec.shape for spec in node.type.operands)
    if 0 in (*left, *right):  # a BLAS refuses these
        return None
    m, k, n = left[0] if len(left) == 2 else 1, right[0], right[1] if len(right) == 2 else 1

    def encode(link: Any) -> MultiplyEach:
        distance = flags = 0
        for operand, side in ((a, LEFT), (b, RIGHT)):
            if isinstance(operand, ParameterSpec):
                _, distance, turned = link.matrix(operand, from_left=False)
                flags = side + turned
        (x, x_column), (w, w_column), (out, out_column) = link.at(a), link.at(b), link.at(Value(number))
        return MultiplyEach(x, x_column, w, w_column, m, k, n, distance, flags, out, out_column)

    return [Native(encode, (a, b), (number,))]


def _lookup(body: Body, number: int, node: Node) -> list[Native] | None:
    (table,) = node.type.operands
    (index,) = node.payload
    assert isinstance(table, ParameterSpec)
    integer = -1 - index  # see `LookUp`; a negative index stands for an integer of the call

    def encode(link: Any) -> LookUp:
        return LookUp(link.at(table)[0], node.type.out.size, integer, *link.at(Value(number)))

    return [Native(encode, (table,), (number,))]


def _softmax(body: Body, number: int, node: Node) -> list[Native] | None:
    (x,) = operands_of(node)
    if len(node.type.out.shape) != 1 or not is_row(body, x):
        return None
    kernel = softmax(node.type.op.name == "log_softmax", body.dtype.name)

    def encode(link: Any) -> KernelStep:
        (slot, column), (to, at) = link.at(x), link.at(Value(number))
        return link.kernel_step(kernel, [node.type.out.size], [(slot, 0), (to, 0)], [column, at])

    return [Native(encode, (x,), (number,))]


MAKERS = {
    "matmul": _matmul,
    "affine": _product,
    "lookup": _lookup,
    "softmax": _softmax,
    "log_softmax": _softmax,
}
