"""From a call on expressions to a node: what callers do not know (see `recorder`) is recorded here, and learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.base.exact import is_told, literal
from edbatch.errors import shown
from edbatch.graph.array_graph import each
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers
from edbatch.graph.many_numbers import note_numbers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType, node_type
from edbatch.graph.op import Op
from edbatch.graph.opened import graphs
from edbatch.graph.place import place_in_python
from edbatch.graph.record import (
    array_operand,
    checked_index,
    graph_of,
    number,
    to_expression,
    to_node,
    to_operands,
)
from edbatch.graph.recorder import ATTRIBUTE, FIXED, INDEX, VIEW, caller, connect
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, NODE_MASK, look

connect(Parameter, graphs.top, place_in_python)


def unary(op: Op) -> Callable[[Any], Expression]:
    """The caller of ops of one operand and no attributes."""

    def slow(x: Any) -> Expression:
        if not isinstance(x, Expression):
            return call(to_expression(op.name, x))
        type = node_type(op, (), (x.spec,))
        call.learn((x.spec,), type.id, type.out)
        return x.graph.add(type, (x.id,))

    call = caller(FIXED, slow)
    return call


def binary(
    op: Op, otherwise: Callable[[Any, Any], Expression | None] | None = None
) -> Callable[[Any, Any], Expression]:
    """The caller of ops of two operands and no attributes.

    Args:
        otherwise: makes what the op is not made for of several nodes, or returns None; asked at first calls.
    """

    def slow(a: Any, b: Any) -> Expression:
        if b.__class__ in (int, float) and isinstance(a, Expression):
            return call(a, number(a.graph, b))
        if a.__class__ in (int, float) and isinstance(b, Expression):
            return call(number(b.graph, a), b)
        if b.__class__ is np.ndarray and isinstance(a, Expression):
            return call(a, array_operand(op, a.graph, b, (a,)))
        if a.__class__ is np.ndarray and isinstance(b, Expression):
            return call(array_operand(op, b.graph, a, (b,)), b)
        found = None if otherwise is None else otherwise(a, b)
        if found is not None:
            return found
        graph = graph_of(op.name, (a, b))
        left, right = to_operands(op, graph, (a, b))
        if not isinstance(left, Expression) and not isinstance(right, Expression):  # who says which graph it is
            left = to_node(graph, left)
        if left is not a or right is not b:
            return call(left, right)
        type = node_type(op, (), (a.spec, b.spec))
        call.learn((a.spec, b.spec), type.id, type.out)
        return graph.add(type, [x.id for x in (a, b) if isinstance(x, Expression)])

    call = caller(FIXED, slow, 2)
    return call


def attributed(
    op: Op,
    attributes_of: Callable[[Any, Any], dict[str, Any] | None],
    default: Any = None,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[..., Any]:
    """The caller of ops of one operand and an argument: an axis, a slope, or several in a tuple.

    Args:
        attributes_of: (spec, argument) -> the op's attributes, or None if the operand itself is the result; checks what
            a caller gave. It runs once for each spec and argument that is a literal, be it of lists in a tuple.
        default: of the argument.
        otherwise: makes what the op is not made for of several nodes, or returns None; asked where x is no expression.
    """
    known: dict[Any, NodeType] = {}

    def slow(x: Any, argument: Any = default) -> Any:
        if not isinstance(x, Expression):
            found = None if otherwise is None else otherwise(x, argument)
            return call(to_expression(op.name, x), argument) if found is None else found
        key = x.spec, literal(argument)
        type = known.get(key)
        if type is None:
            attributes = attributes_of(x.spec, argument)
            if attributes is None:
                return x
            note_numbers(x.graph, op, attributes)
            type = node_type(op, tuple(attributes.items()), (x.spec,))
            if key[1] is not None:
                known[key] = type
        if is_told(argument):
            call.learn((x.spec,), type.id, type.out, argument)
        return x.graph.add(type, (x.id,))

    call = caller(ATTRIBUTE, slow, default=default)
    return call


def _with_inputs(op: Op, operands: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Operands with inputs for numbers and arrays; None if others than these are left, or no expression is."""
    for first in operands:
        if isinstance(first, Expression):
            graph = first.graph
            break
    else:
        return None
    given = []
    for x in operands:
        kind = x.__class__
        if kind is int or kind is float:
            x = number(graph, x)
        elif kind is np.ndarray:
            x = array_operand(op, graph, x, operands)
        elif not isinstance(x, Expression | Parameter):
            return None
        given.append(x)
    return tuple(given)


def described(
    op: Op, attributes_of: Callable[[tuple[Any, ...], Any], dict[str, Any]] = lambda specs, argument: {}
) -> Callable[..., Expression]:
    """The fast way for ops of a few operands and several arguments, each in a tuple.

    What is called takes the node's integers (see `Op.payload`) as its third, which are checked.

    Args:
        attributes_of: as of `attributed`, given the specs of all operands.
    """
    entries: dict[Any, tuple[int, Any]] = {}

    def call(operands: tuple[Any, ...], argument: tuple[Any, ...] = (), payload: tuple[int, ...] = ()) -> Expression:
        graph: Any = None
        ids: list[int] = []
        key: list[Any] = [argument]
        for part in argument:
            key.append(type(part))  # noqa: PERF401 (for so few, `extend` takes longer)
        for x in operands:
            kind = x.__class__
            if kind is Expression or (kind is not Parameter and isinstance(x, Expression)):
                if x.graph is not graph:
                    if graph is not None:
                        return remember(operands, argument, payload)
                    graph = x.graph
                ids.append(x.id)
            elif kind is not Parameter and not isinstance(x, Parameter):
                given = _with_inputs(op, operands)
                return remember(operands, argument, payload) if given is None else call(given, argument, payload)
            key.append(x.spec)
        try:
            entry = entries.get(tuple(key))
        except TypeError:  # lists are no keys
            entry = None
        if entry is None:
            if argument:
                entry = entries.get((literal(argument), *key[len(argument) + 1 :]))
            if entry is None:  # nor is there one of parameters alone, which have no graph
                return remember(operands, argument, payload)
        node = graph.n
        graph.n = node + 1
        graph.types.append(entry[0])
        graph.operands += ids
        if payload:
            graph.integers += payload
        handle = graph.handle
        return handle(graph, node, entry[1])

    def remember(operands: tuple[Any, ...], argument: tuple[Any, ...], payload: tuple[int, ...]) -> Expression:
        graph = graph_of(op.name, operands)
        given = to_operands(op, graph, operands)
        if not any(isinstance(x, Expression) for x in given):
            given[0] = to_node(graph, given[0])
        specs = tuple([x.spec for x in given])
        key = (argument, *map(type, argument), *specs) if is_told(argument) else (literal(argument), *specs)
        entry = entries.get(key)
        if entry is None:
            attributes = attributes_of(specs, argument)
            note_numbers(graph, op, attributes)
            made = node_type(op, tuple(attributes.items()), specs)
            entry = made.id, made.out
            if key[0] is not None:
                entries[key] = entry
                for spec in specs:
                    if isinstance(spec, ParameterSpec):
                        spec.enters(entries, key)
        type_id, out = entry
        node = graph.n
        graph.n = node + 1
        graph.types.append(type_id)
        graph.operands += [x.id for x in given if isinstance(x, Expression)]
        graph.integers += payload
        handle = graph.handle
        return handle(graph, node, out)

    return call


def viewer(op: Op, attributes_of: Callable[[Any, Any], dict[str, Any]], name: str = "") -> Callable[..., Expression]:
    """The caller of views; `attributes_of` as in `attributed`, `name` what messages call it, if not as the op."""
    known: dict[Any, tuple[int, Any]] = {}

    def slow(x: Any, argument: Any = None) -> Expression:
        if not isinstance(x, Expression):
            return call(to_expression(name or op.name, x), argument)
        view = x.id >> NODE_BITS
        key = x.spec, view, literal(argument)
        entry = known.get(key)
        if entry is None:
            out = look(x, op, tuple(attributes_of(x.spec, argument).items()))
            if (out.id - x.id) & NODE_MASK:  # a copy, and no view
                return out
            entry = out.id - x.id, out.spec
            if key[2] is not None:
                known[key] = entry
        if is_told(argument):
            call.learn((x.spec,), 0, entry[1], argument, view, entry[0])
        return x.graph.handle(x.graph, x.id + entry[0], entry[1])

    call = caller(VIEW, slow)
    return call


def indexed(op: Op, check: Callable[[Any, int, str], Any] = checked_index) -> Callable[[Any, int], Expression]:
    """The caller of ops of a vector and an index into it, or a label (`check`)."""
    known: dict[Any, NodeType] = {}

    def slow(x: Any, index: int) -> Expression:
        x, index = each(to_expression(op.name, x), index)
        type = known.get(x.spec)
        if type is None:
            type = known[x.spec] = node_type(op, (), (x.spec,))
        call.learn((x.spec,), type.id, type.out, None, 0, 0, x.spec.shape[0])
        place = op.name if isinstance(index, Integers) else f"{op.name}({x.spec!r}, {shown(index)})"
        return x.graph.add(type, (x.id,), (check(index, x.spec.shape[0], place),))

    call = caller(INDEX, slow)
    return call
