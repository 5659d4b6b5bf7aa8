"""The body of a cell: the small graph that every call of the cell computes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from edbatch.graph.node_type import TYPES, NodeType, node_type
from edbatch.graph.op import OPS
from edbatch.graph.ops.shape import INDEX, RESHAPE
from edbatch.graph.spec import ParameterSpec, Spec, spec_of
from edbatch.graph.trace import ARGUMENT, Trace
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS, View, view_of


@dataclass(frozen=True)
class Value:
    """A node of the body, or what a view shows of it."""

    node: int
    view: View | None = None


@dataclass(frozen=True)
class Node:
    """One operation.

    Args:
        type: its type.
        operands: one per operand that is no parameter.
        payload: integers; -1 - k stands for the cell's k-th integer argument.
        value: of a constant: what fills it (a number, an array or a parameter's spec).
    """

    type: NodeType
    operands: tuple[Value, ...]
    payload: tuple[int, ...] = ()
    value: Any = None


@dataclass(frozen=True)
class Body:
    """What a cell computes: nodes in an order in which operands precede their users.

    Args:
        arguments: specs of the expressions it is given; the first nodes of the body.
        nodes: the arguments, then the operations.
        outputs: what it returns, flattened.
        payloads: number of integers it is given.
    """

    arguments: tuple[Spec, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    payloads: int


def spec_of_value(body: Body, value: Value) -> Spec:
    """Shape and dtype of a value."""
    return value.view.out if value.view is not None else body.nodes[value.node].type.out


def body_of(trace: Trace, arguments: tuple[Spec, ...], outputs: list[int], payloads: int) -> Body:
    """What a trace has recorded; `outputs` are ids of its expressions."""
    nodes = []
    at = 0
    for id in trace.types:
        type = TYPES[id]
        n = type.n_args
        if type.op.variadic:
            n = trace.args[at]
            at += 1
        ints = trace.args[at : at + n]
        at += n
        n_operands = n - type.op.payload
        value: Any = None
        if type.op.name == "input":
            value, ints, n_operands = trace.inputs[ints[0]], [], 0
        nodes.append(Node(type, tuple(map(to_value, ints[:n_operands])), tuple(ints[n_operands:]), value))
    return Body(arguments, tuple(nodes), tuple(map(to_value, outputs)), payloads)


def to_value(id: int) -> Value:
    """An expression's id as a value."""
    return Value(id & NODE_MASK, VIEWS[id >> NODE_BITS])


def row_of(body: Body, dtype: Any) -> tuple[tuple[int, ...], Spec, tuple[tuple[int, Spec], ...]]:
    """How the outputs of a call lie side by side in one row, its node's value.

    Returns:
        per output the column it begins at; the spec of the row; and per output, how to see it in the row: the step
        from the node's id to the expression's, and its spec.
    """
    specs = [spec_of_value(body, value) for value in body.outputs]
    begins: dict[Value, int] = {}
    width = 0
    for value, spec in zip(body.outputs, specs, strict=True):
        if value not in begins:
            begins[value] = width
            width += spec.size
    columns = tuple(begins[value] for value in body.outputs)
    if len(begins) == 1:
        return columns, specs[0], tuple((0, spec) for spec in specs)
    row = spec_of((width,), dtype)
    return columns, row, tuple((_step(row, column, spec), spec) for column, spec in zip(columns, specs, strict=True))


def _step(row: Spec, column: int, spec: Spec) -> int:
    index = (column,) if spec.shape == () else ((column, column + spec.size, 1),)
    view = view_of(row, 0, INDEX, (("index", index),))
    assert view is not None
    if len(spec.shape) > 1:
        view = view_of(view.out, view.code, RESHAPE, (("shape_to", spec.shape),))
        assert view is not None
    return view.code << NODE_BITS


def simplify(body: Body) -> Body:
    """The same computation with equal nodes merged, products and their biases joined, and dead nodes dropped."""
    return drop_dead(join_biases(merge_equal(body)))


def merge_equal(body: Body) -> Body:
    """One node for all that compute the same of the same."""
    seen: dict[Any, int] = {}
    kept: list[Node] = []
    new: dict[int, int] = {}
    for number, node in enumerate(body.nodes):
        node = replace(node, operands=tuple(_moved(value, new) for value in node.operands))
        key = (node.type, node.operands, node.payload, None if node.value is None else number)
        if key not in seen:
            seen[key] = len(kept)
            kept.append(node)
        new[number] = seen[key]
    return replace(body, nodes=tuple(kept), outputs=tuple(_moved(value, new) for value in body.outputs))


def join_biases(body: Body) -> Body:
    """`W @ x + b` as one node, where the product has no other use."""
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


def drop_dead(body: Body) -> Body:
    """Without nodes that no output needs; arguments stay."""
    alive = [node.type.op is ARGUMENT for node in body.nodes]
    for value in body.outputs:
        alive[value.node] = True
    for number in range(len(body.nodes) - 1, -1, -1):
        if alive[number]:
            for value in body.nodes[number].operands:
                alive[value.node] = True
    new = {number: position for position, number in enumerate(n for n, keep in enumerate(alive) if keep)}
    kept = tuple(
        replace(node, operands=tuple(_moved(value, new) for value in node.operands))
        for node, keep in zip(body.nodes, alive, strict=True)
        if keep
    )
    return replace(body, nodes=kept, outputs=tuple(_moved(value, new) for value in body.outputs))


def _moved(value: Value, new: dict[int, int]) -> Value:
    return Value(new[value.node], value.view)
