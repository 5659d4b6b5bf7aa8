"""Pass: ops that are written with other ops, as what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from edbatch.errors import EdBatchError, shown
from edbatch.graph.cell.body import Body, Node, Nodes, Value, body_of, origin, rewritten
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import NodeType, intern, node_type
from edbatch.graph.op import OPS
from edbatch.graph.ops.shape import EMBED
from edbatch.graph.sources import ONES
from edbatch.graph.spec import Spec, spec_of
from edbatch.graph.views import look_through


def open_composites(body: Body) -> Body:
    """Put the bodies of composites in their places; of ops over lists, which have a fixed length, each element's."""
    while any(functions := [_composite(node.type) for node in body.nodes]):
        body = _opened(body, functions)
    return body


def open_affines(body: Body) -> Body:
    """Put a product and a sum in the place of every `affine`, so that each may be batched with others."""
    functions = [node.type.op.composite if node.type.op.name == "affine" else None for node in body.nodes]
    return _opened(body, functions) if any(functions) else body


def _composite(type: NodeType) -> Callable[..., Any] | None:
    op = type.op
    if op.variadic:
        return None if op.unrolled is not None else partial(_element_by_element, type)
    return op.composite


def body_over_lists(type: NodeType) -> Body:
    """What an op over lists computes of lists of any length: of its operands, and of each element of its lists."""
    singles = type.op.singles
    lists = [spec_of(spec.shape, spec.dtype, each=True) for spec in type.operands[singles:]]
    assert type.op.composite is not None
    body = _body_of(type, type.op.composite, (*type.operands[:singles], *lists))
    if any(node.type.parameters for node in body.nodes):
        raise EdBatchError(f"{type}: its definition reads a parameter; expected the parameter among its operands")
    return body


_OF_LISTS = {"sum": "sum_list", "max": "maximum_list", "min": "minimum_list"}  # reductions, in cells


def _element_by_element(type: NodeType, *operands: Expression, **_: Any) -> Expression:
    """The same of lists of a fixed length, recorded."""
    body, singles, trace = open_lists(body_over_lists(type)), type.op.singles, operands[0].graph
    length = (len(operands) - singles) // type.lists
    # Of each value the expressions: one, or one for each element.
    values = [[x] for x in operands[:singles]]
    values += [[*operands[begin : begin + length]] for begin in range(singles, len(operands), length)]

    def computed(node: Node, xs: Sequence[Expression]) -> Expression:
        if node.value is not None:
            trace.inputs.append(node.value)
            return trace.add(node.type, (), (len(trace.inputs) - 1,))
        op, attributes, out = node.type.op, node.type.attributes, spec_of(node.type.out.shape, node.type.out.dtype)
        specs = tuple([spec_of(spec.shape, spec.dtype) for spec in node.type.operands])
        counted = [len(xs)] if op.variadic else []
        return trace.add(intern(op, attributes, specs, out), [*counted, *(x.id for x in xs)], node.payload)

    for node in body.nodes[len(values) :]:
        read = [[look_through(x, value.steps) for x in values[value.node]] for value in node.operands]
        if node.type.op.segments:
            (xs,), op = read, OPS[_OF_LISTS[node.type.op.reduction]]
            if body.nodes[node.operands[0].node].type.op is ONES:
                values.append([xs[0] * float(length)])
            else:
                values.append([trace.add(node_type(op, (), (xs[0].spec,)), [length, *(x.id for x in xs)])])
        elif node.type.out.each:
            each = [xs * length if len(xs) == 1 else xs for xs in read]
            values.append([computed(node, [xs[at] for xs in each]) for at in range(length)])
        else:
            values.append([computed(node, [x for (x,) in read])])
    return look_through(values[body.outputs[0].node][0], body.outputs[0].steps)


def open_lists(body: Body) -> Body:
    """Put what other ops are made of when they are computed in their places: of sums of lists, chains of ops."""
    if any(node.type.op.unrolled is not None for node in body.nodes):
        body = _opened(body, [node.type.op.unrolled for node in body.nodes])
    return open_composites(body)


def _body_of(type: NodeType, function: Callable[..., Any], specs: Sequence[Spec]) -> Body:
    """What nodes of a type compute: a function, traced on operands of these specs.

    Raises:
        EdBatchError: what is recorded has another shape than the type says.
    """
    op = type.op
    trace = Trace(op.name, type.out.dtype)
    given: list[Any] = [trace.argument(spec) for spec in specs]
    given += [trace.payload() for _ in range(op.payload)]
    result = traced(trace, partial(function, *given, **dict(type.attributes)))
    if not isinstance(result, Expression) or result.graph is not trace:
        raise EdBatchError(f"{type}: its definition: expected an expression of its operands, got {shown(result)}")
    if result.shape != type.out.shape:
        raise EdBatchError(f"{type}: its shape rule gives {type.out!r}, but its definition gives {result.spec!r}")
    if result.spec.each and not type.out.each:
        raise EdBatchError(f"{type}: its definition gives a value for each element of a list; expected one for all")
    return body_of(trace, tuple(specs), [result.id], op.payload)


def _opened(body: Body, functions: Sequence[Callable[..., Any] | None]) -> Body:
    """With what functions record in the places of the nodes that have one."""
    returned = {origin(body, value)[0] for value in body.outputs}  # copies of views show it, too

    def change(nodes: Nodes, number: int, node: Node) -> Value | None:
        function, type, operands = functions[number], node.type, node.operands
        if function is None:
            return None
        inner = _body_of(type, function, list(map(nodes.spec, operands)) if type.op.variadic else type.operands)
        inside: dict[int, Value] = dict(enumerate(operands))
        for at, one in enumerate(inner.nodes[len(operands) :], len(operands)):
            payload = tuple(node.payload[-1 - x] if x < 0 else x for x in one.payload)
            inside[at] = nodes.add(one._replace(operands=nodes.moved(one.operands, inside), payload=payload))
        (result,) = nodes.moved(inner.outputs, inside)
        shown, steps = origin(inner, inner.outputs[0])
        overlaps = any(OPS.get(view.name) is not view for view, _ in steps)  # what no user can write
        if number in returned and (shown < len(operands) or overlaps):
            # Users may ask for its gradient: it is a value of its own, and no copy of a view.
            spec = nodes.spec(result)
            index = tuple((0, size, 1) for size in spec.shape)
            return nodes.made(EMBED, (result,), (("shape_to", spec.shape), ("index", index), ("fill", 0.0)))
        return result

    return rewritten(body, change)
