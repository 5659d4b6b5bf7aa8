"""Pass: `W @ x + b` as one node."""

from __future__ import annotations

from dataclasses import replace

from edbatch.graph.body import Body, Node
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import ParameterSpec


def join_biases(body: Body) -> Body:
    """Make an `affine` of every product whose only use is to have a bias added."""
    uses = [0] * len(body.nodes)
    for value in [value for node in body.nodes for value in node.operands] + list(body.outputs):
        uses[value.node] += 1
    nodes = list(body.nodes)
    for number, node in enumerate(nodes):
        if node.type.op is not OPS["add"] or len(node.operands) != 1:
            continue
        (value,) = node.operands
        product = nodes[value.node]
        bias = next(operand for operand in node.type.operands if isinstance(operand, ParameterSpec))
        weight = product.type.operands[0] if product.type.operands else None
        if (
            product.type.op is OPS["matmul"]
            and isinstance(weight, ParameterSpec)
            and len(product.operands) == 1
            and value.view is None
            and uses[value.node] == 1
            and bias.shape == product.type.out.shape
        ):
            type = node_type(OPS["affine"], (), (weight, product.type.operands[1], bias))
            nodes[number] = Node(type, product.operands)
    return replace(body, nodes=tuple(nodes))
