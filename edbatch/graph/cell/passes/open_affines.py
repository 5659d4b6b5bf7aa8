"""Pass: `affine(W, x, b)` as a product and a sum, so that products batch whatever becomes of their biases."""

from __future__ import annotations

from edbatch.graph.cell.body import Body, Node, Value, renumbered
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import ParameterSpec


def open_affines(body: Body) -> Body:
    """Make a product and a sum of every `affine` whose weight and bias are parameters."""
    nodes: list[Node] = []
    new: dict[int, int] = {}
    for number, node in enumerate(body.nodes):
        specs = node.type.operands
        if (
            node.type.op.name == "affine"
            and isinstance(specs[0], ParameterSpec)
            and isinstance(specs[2], ParameterSpec)
        ):
            out = node.type.out
            product = len(body.nodes) + len(nodes)  # numbered from the end of `body`, as operands still are
            new[product] = len(nodes)
            nodes.append(Node(node_type(OPS["matmul"], (), specs[:2]), node.operands, cuts=node.cuts))
            nodes.append(Node(node_type(OPS["add"], (), (out, specs[2])), (Value(product),), cuts=node.cuts))
        else:
            nodes.append(node)
        new[number] = len(nodes) - 1
    return renumbered(body, nodes, new)
