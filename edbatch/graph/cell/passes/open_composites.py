"""Pass: ops that are written with other ops, as what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from edbatch.errors import EdBatchError, shown
from edbatch.graph.cell.body import Body, Node, Nodes, Value, body_of, origin
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import node_type, parameter_of
from edbatch.graph.op import OPS
from edbatch.graph.ops.shape import EMBED
from edbatch.graph.spec import ParameterSpec, Spec


def open_composites(body: Body) -> Body:
    """Put the bodies of composites in their places."""
    while any(functions := [None if node.type.op.variadic else node.type.op.composite for node in body.nodes]):
        body = _opened(body, functions)
    return body


def open_over_lists(body: Body) -> Body:
    """Put in their places what ops over lists compute of elements of any number, as which their operands are given."""
    return _opened(body, [node.type.op.composite if node.type.op.variadic else None for node in body.nodes])


def open_lists(body: Body) -> Body:
    """Put what other ops are made of when they are computed in their places: of reductions of lists, chains of ops."""
    if any(node.type.op.unrolled is not None for node in body.nodes):
        body = _opened(body, [node.type.op.unrolled for node in body.nodes])
    return open_composites(body)


def _body_of(node: Node, function: Callable[..., Any], read: Sequence[Spec]) -> Body:
    """What a node computes: its function, traced on what the type says of its operands, or what a variadic op reads.

    Raises:
        EdBatchError: a parameter among them is gone, or what is recorded has another shape than the type says.
    """
    type, op = node.type, node.type.op
    trace = Trace(op.name, type.out.dtype)
    specs = read if op.variadic else type.operands
    given: list[Any] = [
        parameter_of(spec) if isinstance(spec, ParameterSpec) else trace.argument(spec) for spec in specs
    ]
    given += [trace.payload() for _ in range(op.payload)]
    result = traced(trace, partial(function, *given, **dict(type.attributes)))
    if not isinstance(result, Expression) or result.graph is not trace:
        raise EdBatchError(f"{type}: what it is made of: expected an expression of its operands, got {shown(result)}")
    if result.shape != type.out.shape:
        raise EdBatchError(f"{type}: its shape rule gives {type.out!r}, but what it is made of is {result.spec!r}")
    if result.spec.each and not type.out.each:
        raise EdBatchError(f"{type}: what it is made of is a value for each element of a list: expected one for all")
    arguments = tuple(spec for spec in specs if not isinstance(spec, ParameterSpec))
    return body_of(trace, arguments, [result.id], op.payload)


def _opened(body: Body, functions: Sequence[Callable[..., Any] | None]) -> Body:
    """With what functions record in the places of the nodes that have one."""
    nodes = Nodes()
    values: dict[int, Value] = {}  # what nodes of `body` are now

    def seen(value: Value, of: dict[int, Value]) -> Value:
        """A value of nodes that are others now."""
        return nodes.seen(of[value.node], value.steps)

    def computed(value: Value) -> Value:
        """A value of its own: no copy of a view, whose gradient is that of what it shows."""
        spec = nodes.spec(value)
        index = tuple((0, size, 1) for size in spec.shape)
        type = node_type(EMBED, (("shape_to", spec.shape), ("index", index), ("fill", 0.0)), (spec,))
        return nodes.add(Node(type, (value,)))

    returned = {origin(body, value)[0] for value in body.outputs}  # copies of views show it, too
    for number, (node, function) in enumerate(zip(body.nodes, functions, strict=True)):
        operands = tuple(seen(value, values) for value in node.operands)
        if function is None:
            values[number] = nodes.add(node.of(operands) if operands else node)
            continue
        inner = _body_of(node, function, [nodes.spec(value) for value in operands])
        inside: dict[int, Value] = dict(enumerate(operands))
        for at, one in enumerate(inner.nodes[len(operands) :], len(operands)):
            payload = tuple(node.payload[-1 - x] if x < 0 else x for x in one.payload)
            read = tuple(seen(value, inside) for value in one.operands)
            inside[at] = nodes.add(one._replace(operands=read, payload=payload))
        result = inner.outputs[0]
        values[number] = seen(result, inside)
        shown, steps = origin(inner, result)
        overlaps = any(OPS.get(view.name) is not view for view, _ in steps)  # what no user can write
        if number in returned and (shown < len(operands) or overlaps):
            values[number] = computed(values[number])  # users may ask for its gradient
    outputs = tuple(seen(value, values) for value in body.outputs)
    return body._replace(nodes=tuple(nodes), outputs=outputs)
