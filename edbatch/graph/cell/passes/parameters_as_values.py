"""Pass: parameters of element-wise ops as nodes, so that slices of a result are results of slices of them."""

from __future__ import annotations

from dataclasses import replace

from edbatch.graph.cell.body import Body, Node, Nodes, Value, operands_of, rebuilt
from edbatch.graph.node_type import intern, node_type
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, spec_of


def parameters_as_values(body: Body) -> Body:
    """Make nodes of the vectors that element-wise ops read as parameters, one of each."""
    nodes = Nodes()
    new: dict[int, int] = {}
    made: dict[ParameterSpec, Value] = {}
    for number, old in enumerate(body.nodes):
        node = old.moved(new)
        operands = list(operands_of(node))
        for at, operand in enumerate(operands):
            if isinstance(operand, ParameterSpec) and _is_of_its_shape(node, operand):
                if operand not in made:
                    out = spec_of(operand.shape, operand.dtype)
                    made[operand] = nodes.add(
                        Node(intern(PARAMETER, (("parameter", operand),), (), out), (), cuts=node.cuts)
                    )
                operands[at] = made[operand]
        values = tuple(x for x in operands if isinstance(x, Value))
        if len(values) > len(node.operands):
            specs = tuple(nodes.spec(x) if isinstance(x, Value) else x for x in operands)
            node = replace(node, type=node_type(node.type.op, node.type.attributes, specs), operands=values)
        new[number] = nodes.add(node).node
    return rebuilt(body, nodes, new)


def _is_of_its_shape(node: Node, operand: ParameterSpec) -> bool:
    """Whether the result of an element-wise op is a vector like the operand."""
    return node.type.op.elementwise and len(operand.shape) == 1 and operand.shape == node.type.out.shape
