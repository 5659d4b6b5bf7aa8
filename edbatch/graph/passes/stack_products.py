"""Pass: products of several weights with one vector as one product with the weights stacked (section 3.1)."""

from __future__ import annotations

from collections import defaultdict

from edbatch.graph.body import Body, Node, Value, renumbered
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.ops.shape import INDEX
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.stacking import can_stack, stacked
from edbatch.graph.views import view_of


def stack_products(body: Body) -> Body:
    """Make one node of all `W_i @ x` with one x, and one of all `W_i @ x + b_i`; each result is a slice of its result.

    The weights become views of one array, as do the biases. What is part of another stack stays as it is.
    """
    groups: dict[tuple[str, Value], list[int]] = defaultdict(list)
    for number, node in enumerate(body.nodes):
        if _is_product(node):
            groups[node.type.op.name, node.operands[0]].append(number)
    slices: dict[int, Value] = {}
    nodes: list[Node] = []
    new: dict[int, int] = {}
    made: dict[int, int] = {}  # from the first node of a group to the stacked one, numbered from the end of `body`
    for number, node in enumerate(body.nodes):
        if _is_product(node) and number not in slices:
            group = groups[node.type.op.name, node.operands[0]]
            stack = _stack(body, group) if group[0] == number and len(group) > 1 else None
            if stack is not None:
                made[number] = len(body.nodes) + len(made)
                new[made[number]] = len(nodes)
                nodes.append(stack)
                begin = 0
                for member in group:
                    rows = body.nodes[member].type.out.shape[0]
                    view = view_of(stack.type.out, 0, INDEX, (("index", ((begin, begin + rows, 1),)),))
                    slices[member] = Value(made[number], view)
                    begin += rows
        if number not in slices:
            new[number] = len(nodes)
            nodes.append(node)
    if not made:
        return body

    def sliced(value: Value) -> Value:
        found = slices.get(value.node)
        if found is None:
            return value
        view = found.view
        for op, attributes in value.view.steps if value.view is not None else ():
            assert view is not None
            view = view_of(view.out, view.code, op, attributes)
        assert view is not None
        return Value(found.node, view)

    kept = [Node(node.type, tuple(map(sliced, node.operands)), node.payload, node.value) for node in nodes]
    return renumbered(
        Body(body.arguments, (), tuple(map(sliced, body.outputs)), body.payloads),
        kept,
        new,
    )


def _is_product(node: Node) -> bool:
    """Whether it is a matrix that is a parameter times a vector, perhaps with a bias that is one."""
    specs = node.type.operands
    return (
        node.type.op.name in ("matmul", "affine")
        and len(node.operands) == 1
        and len(node.type.out.shape) == 1
        and isinstance(specs[0], ParameterSpec)
        and all(isinstance(spec, ParameterSpec) for spec in specs[2:])
    )


def _stack(body: Body, group: list[int]) -> Node | None:
    types = [body.nodes[number].type for number in group]
    columns = zip(*(type.operands for type in types), strict=True)
    specs = [[spec for spec in column if isinstance(spec, ParameterSpec)] for column in columns]
    weights, biases = specs[0], specs[2:]
    if not all(can_stack(column) for column in (weights, *biases)):
        return None
    stacks = [stacked(column) for column in (weights, *biases)]
    x = body.nodes[group[0]]
    weight, *bias = [spec for spec in stacks if spec is not None]
    operands = (weight, x.type.operands[1], *bias)
    return Node(node_type(OPS[x.type.op.name], (), operands), x.operands)
