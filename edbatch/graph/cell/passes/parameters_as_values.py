"""Pass: parameters of element-wise ops as nodes, so that slices of a result are results of slices of them."""

from __future__ import annotations

from dataclasses import replace

from edbatch.graph.cell.body import Body, Node, Value, operands_of, renumbered
from edbatch.graph.node_type import intern, node_type
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, spec_of


def parameters_as_values(body: Body) -> Body:
    """Make nodes of the vectors that element-wise ops read as parameters, one of each."""
    nodes: list[Node] = []
    new: dict[int, int] = {}
    made: dict[ParameterSpec, int] = {}  # numbered from the end of `body`, as operands still are
    for number, node in enumerate(body.nodes):
        found = [_of_its_shape(node, operand) for operand in operands_of(node)]
        for spec in filter(None, found):
            if spec not in made:
                made[spec] = len(body.nodes) + len(made)
                new[made[spec]] = len(nodes)
                out = spec_of(spec.shape, spec.dtype)
                nodes.append(Node(intern(PARAMETER, (("parameter", spec),), (), out), (), cuts=node.cuts))
        if any(found):
            values = [
                operand if spec is None else Value(made[spec])
                for operand, spec in zip(operands_of(node), found, strict=True)
            ]
            specs = [
                operand if spec is None else spec_of(spec.shape, spec.dtype)
                for operand, spec in zip(node.type.operands, found, strict=True)
            ]
            type = node_type(node.type.op, node.type.attributes, tuple(specs))
            node = replace(node, type=type, operands=tuple(value for value in values if isinstance(value, Value)))
        new[number] = len(nodes)
        nodes.append(node)
    return renumbered(body, nodes, new)


def _of_its_shape(node: Node, operand: Value | ParameterSpec) -> ParameterSpec | None:
    """The operand, if it is a parameter and a vector like the result."""
    vector = node.type.op.elementwise and len(node.type.out.shape) == 1
    return operand if isinstance(operand, ParameterSpec) and vector and operand.shape == node.type.out.shape else None
