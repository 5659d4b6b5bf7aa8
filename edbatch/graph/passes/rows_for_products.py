"""Pass: vectors that are the same for all calls as rows of their own, where a product reads them.

A product of a batch reads a matrix with a row per call: a BLAS takes no matrix whose rows are all at one place.
"""

from __future__ import annotations

from dataclasses import replace

from edbatch.graph.body import Body, Node, Value, renumbered, spec_of_value
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS, Kind
from edbatch.graph.trace import ARGUMENT


def rows_for_products(body: Body) -> Body:
    """Copy constants and parameters, once a call, before products of them with a parameter read them as vectors."""
    nodes: list[Node] = []
    new: dict[int, int] = {}
    copies: dict[Value, Value] = {}  # numbered from the end of `body`, as operands still are
    for number, node in enumerate(body.nodes):
        if node.type.op.name in ("matmul", "affine") and _is_fixed_vector(body, node):
            value, *others = node.operands
            if value not in copies:
                copies[value] = Value(len(body.nodes) + len(copies))
                new[copies[value].node] = len(nodes)
                type = node_type(OPS["concatenate"], (("axis", 0),), (spec_of_value(body, value),))
                nodes.append(Node(type, (value,)))
            node = replace(node, operands=(copies[value], *others))
        new[number] = len(nodes)
        nodes.append(node)
    return renumbered(body, nodes, new)


def _is_fixed_vector(body: Body, node: Node) -> bool:
    """Whether the first operand that is no parameter is a vector that is the same for all calls."""
    value = node.operands[0]
    op = body.nodes[value.node].type.op
    return op.kind is Kind.SOURCE and op is not ARGUMENT and len(spec_of_value(body, value).shape) == 1
