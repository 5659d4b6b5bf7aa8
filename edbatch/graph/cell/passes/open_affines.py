"""Pass: `affine(W, x, b)` as a product and a sum, so that products batch whatever becomes of their biases."""

from __future__ import annotations

from edbatch.graph.cell.body import Body, Node, Nodes, rebuilt
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import ParameterSpec


def open_affines(body: Body) -> Body:
    """Make a product and a sum of every `affine` whose weight and bias are parameters."""
    nodes = Nodes()
    new: dict[int, int] = {}
    for number, old in enumerate(body.nodes):
        node, specs = old.moved(new), old.type.operands
        if (
            node.type.op.name == "affine"
            and isinstance(specs[0], ParameterSpec)
            and isinstance(specs[2], ParameterSpec)
        ):
            product = nodes.add(Node(node_type(OPS["matmul"], (), specs[:2]), node.operands, cuts=node.cuts))
            node = Node(node_type(OPS["add"], (), (node.type.out, specs[2])), (product,), cuts=node.cuts)
        new[number] = nodes.add(node).node
    return rebuilt(body, nodes, new)
