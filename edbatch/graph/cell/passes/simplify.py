"""Passes that each take a few lines: fewer nodes, and simpler ones."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Node, Nodes, Value, operands_of, rebuilt, with_nodes
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.node_type import intern, node_type
from edbatch.graph.op import OPS, Kind
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, spec_of


def drop_dead(body: Body) -> Body:
    """Drop what no output needs; arguments stay."""
    alive = [node.type.op is ARGUMENT for node in body.nodes]
    for value in body.outputs:
        alive[value.node] = True
    for number in range(len(body.nodes) - 1, -1, -1):
        if alive[number]:
            for value in body.nodes[number].operands:
                alive[value.node] = True
    return with_nodes(body, [number for number, keep in enumerate(alive) if keep])


def merge_equal(body: Body, named: bool = False) -> Body:
    """Merge nodes of one type with equal operands and payload; what is foreign may do more than it returns.

    Args:
        named: each result keeps a gradient of its own, see `prepare_for_batching`: of what is merged with others, a
            result is a copy, which all read that read the result.
    """
    returned = {value.node for value in body.outputs} if named else set()
    seen: dict[Any, int] = {}
    kept: list[Node] = []
    new: dict[int, int] = {}
    members: dict[int, int] = {}
    copies: dict[int, int] = {}  # of what
    for number, node in enumerate(body.nodes):
        moved = node if len(kept) == number and not copies else node.moved(new)
        is_one = moved.value is not None or moved.type.op.call is not None
        key = (moved.type, moved.operands, moved.payload, number if is_one else None)
        if key not in seen:
            seen[key] = len(kept)
            kept.append(moved)
        first = new[number] = seen[key]
        members[first] = members.get(first, 0) + 1
        is_other = node.type.op.kind is Kind.VIEW or node.type.op is ARGUMENT  # and has its gradient anyway
        if number in returned and not is_other:
            new[number] = len(kept)
            copies[len(kept)] = first
            kept.append(Node(node_type(OPS["scale_gradient"], (("scale", 1.0),), (node.type.out,)), (Value(first),)))
    if len(kept) == len(body.nodes) and not copies:
        return body
    alone = {copy: of for copy, of in copies.items() if members[of] == 1}
    return with_nodes(rebuilt(body, kept, new), [number for number in range(len(kept)) if number not in alone], alone)


def open_affines(body: Body) -> Body:
    """Make a product and a sum of every `affine` whose weight and bias are parameters."""
    if all(node.type.op is not OPS["affine"] for node in body.nodes):
        return body
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


def parameters_as_values(body: Body) -> Body:
    """Make nodes of the vectors that element-wise ops read as parameters, one of each."""
    if all(len(node.operands) == len(node.type.operands) for node in body.nodes if node.type.op.elementwise):
        return body
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
            node = node._replace(type=node_type(node.type.op, node.type.attributes, specs), operands=values)
        new[number] = nodes.add(node).node
    return rebuilt(body, nodes, new)


def _is_of_its_shape(node: Node, operand: ParameterSpec) -> bool:
    """Whether the result of an element-wise op is a vector like the operand."""
    return node.type.op.elementwise and len(operand.shape) == 1 and operand.shape == node.type.out.shape
