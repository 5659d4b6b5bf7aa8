"""Which nodes the interpreter computes itself, beside fused kernels and copies: products, look-ups, softmax."""

from __future__ import annotations

from typing import Any

from edbatch.graph.body import Body, Node, Value, spec_of_value
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import ADD, Step
from edbatch.runtime.cell_steps import Native, copy_step, is_native, is_row, operands_of


def native_step(body: Body, number: int) -> list[Native] | None:
    """The interpreter's steps for a node; None if it has none."""
    node = body.nodes[number]
    make = MAKERS.get(node.type.op.name)
    if make is None or not is_native(body):
        return None
    return make(body, number, node)


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
        or not is_row(body, x)
        or not all(is_row(body, operand) for operand in bias)
    ):
        return None
    size, out_size = spec_of_value(body, x).size, node.type.out.size

    def encode(link: Any) -> tuple[int, ...]:
        slot, distance, transposed = link.matrix(weight, from_left)
        flags = transposed + ADD * len(bias)
        return Step.MULTIPLY, *link.at(x), slot, size, out_size, distance, flags, *link.at(Value(number))

    # With a bias the product is added to it.
    return [*(copy_step(operand, out_size, number, 0) for operand in bias), Native(encode, (weight, x), (number,))]


def _lookup(body: Body, number: int, node: Node) -> list[Native] | None:
    (table,) = node.type.operands
    (index,) = node.payload
    assert isinstance(table, ParameterSpec)
    payload = -1 - index  # see `Step.LOOKUP`; a negative index stands for an integer of the call

    def encode(link: Any) -> tuple[int, ...]:
        return Step.LOOKUP, link.at(table)[0], node.type.out.size, payload, *link.at(Value(number))

    return [Native(encode, (table,), (number,))]


def _softmax(body: Body, number: int, node: Node) -> list[Native] | None:
    (x,) = operands_of(node)
    if len(node.type.out.shape) != 1 or not is_row(body, x):
        return None
    logarithm = int(node.type.op.name == "log_softmax")

    def encode(link: Any) -> tuple[int, ...]:
        return Step.SOFTMAX, *link.at(x), *link.at(Value(number)), node.type.out.size, logarithm

    return [Native(encode, (x,), (number,))]


MAKERS = {
    "matmul": _product,
    "affine": _product,
    "lookup": _lookup,
    "softmax": _softmax,
    "log_softmax": _softmax,
}
