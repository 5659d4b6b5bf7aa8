"""Pass: `W @ x + b` as one node, which adds the bias in place."""

from __future__ import annotations

from collections import Counter

from edbatch.graph.cell.body import Body, Node
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import ParameterSpec


def join_biases(body: Body, fuse: bool) -> Body:
    """Make an `affine` of every product of a matrix and a vector whose only use is to have a bias added.

    Args:
        fuse: leave those that only element-wise ops read: there the bias is added in the fused kernel, and not in
            memory.
    """
    if all(node.type.op is not OPS["add"] or len(node.operands) != 1 for node in body.nodes):
        return body
    read = [(value.node, not node.type.op.scalar) for node in body.nodes for value in node.operands]
    read += [(value.node, True) for value in body.outputs]
    uses = Counter(number for number, _ in read)
    kept = {number for number, keeps in read if keeps or not fuse}  # as `affine`
    nodes = list(body.nodes)
    for number, node in enumerate(nodes):
        if node.type.op is not OPS["add"] or len(node.operands) != 1 or number not in kept:
            continue
        (value,) = node.operands
        product = nodes[value.node]
        bias = next(operand for operand in node.type.operands if isinstance(operand, ParameterSpec))
        weight = product.type.operands[0] if product.type.operands else None
        if (
            product.type.op is OPS["matmul"]
            and isinstance(weight, ParameterSpec)
            and (len(weight.shape), len(product.type.out.shape)) == (2, 1)
            and len(product.operands) == 1
            and value.view is None
            and uses[value.node] == 1
            and bias.shape == product.type.out.shape
            and node.cuts == product.cuts
        ):
            type = node_type(OPS["affine"], (), (weight, product.type.operands[1], bias))
            nodes[number] = Node(type, product.operands, cuts=node.cuts)
    return body._replace(nodes=tuple(nodes))
