"""Pass: a bias whose product goes on into element-wise ops is added there, in the fused kernel, and not in memory."""

from __future__ import annotations

import numpy as np

from edbatch.graph.body import Body, Node, Value, renumbered
from edbatch.graph.node_type import intern, node_type
from edbatch.graph.op import OPS
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, spec_of


def split_biases(body: Body) -> Body:
    """Make a product and a sum of every `affine` that only element-wise ops read (in float32: others do not fuse)."""
    fusable = [
        node.type.op.name == "affine" and len(node.type.out.shape) == 1 and node.type.out.dtype == np.float32
        for node in body.nodes
    ]
    for value in body.outputs:
        fusable[value.node] = False
    for node in body.nodes:
        for value in node.operands:
            fusable[value.node] &= bool(node.type.op.scalar)
    nodes: list[Node] = []
    biases: dict[ParameterSpec, int] = {}
    new: dict[int, int] = {}
    for number, node in enumerate(body.nodes):
        weight_and_bias = [spec for spec in node.type.operands if isinstance(spec, ParameterSpec)]
        if not fusable[number] or len(weight_and_bias) != 2:
            nodes.append(node)
        else:
            weight, bias = weight_and_bias
            out = node.type.out
            product = node_type(OPS["matmul"], (), (weight, node.type.operands[1]))
            whole = intern(PARAMETER, (("parameter", bias),), (), spec_of(bias.shape, bias.dtype))
            # Operands are still numbered as in `body`; what is new is numbered from its end.
            base = len(body.nodes) + len(nodes)
            if bias not in biases:
                biases[bias] = base
                new[base] = len(nodes)
                nodes.append(Node(whole, ()))
            new[base + 1] = len(nodes)
            nodes.append(Node(product, node.operands))
            nodes.append(Node(node_type(OPS["add"], (), (out, out)), (Value(base + 1), Value(biases[bias]))))
        new[number] = len(nodes) - 1
    return renumbered(body, nodes, new)
