"""From a call on expressions to a node, the fast ways.

They do a dictionary look-up from operand specs to (type id, result spec) and append. Whatever they do not find or
expect - a first call, a number, a parameter alone, an expression of another graph - goes the careful way of `record`,
from behind the `try`: what is raised there has then no `KeyError` before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from edbatch.base.exact import is_told, kinds
from edbatch.errors import shown
from edbatch.graph.expression import Expression
from edbatch.graph.expression_list import listed
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Op
from edbatch.graph.record import (
    array_input,
    checked_index,
    graph_of,
    number,
    record,
    to_expression,
    to_operand,
)
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, NODE_MASK, look


def documented(
    call: Callable[..., Expression], module: str, name: str, doc: str, argument: str = ""
) -> Callable[..., Expression]:
    """Give a fast way its public name and docstring; a function around it would cost a third of the call.

    Args:
        argument: what the function's `argument` is called, for callers who name it and for `inspect.signature`.
    """
    call.__name__ = call.__qualname__ = name
    if argument:
        assert isinstance(call, FunctionType)
        names = tuple(argument if known == "argument" else known for known in call.__code__.co_varnames)
        call.__code__ = call.__code__.replace(co_varnames=names)
        call.__annotations__[argument] = call.__annotations__.pop("argument")
    call.__doc__ = doc
    call.__module__ = module
    return call


def unary(op: Op) -> Callable[[Any], Expression]:
    """The fast way for ops of one operand and no attributes."""
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any) -> Expression:
        try:
            type_id, spec = entries[x.spec]
        except (KeyError, AttributeError):
            pass
        else:
            graph = x.graph
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            graph.args.append(x.id)
            return Expression(graph, node, spec)
        return remember(x)

    def remember(x: Any) -> Expression:
        out = record(op, (x,))
        if isinstance(x, Expression):
            entries[x.spec] = (node_type(op, (), (x.spec,)).id, out.spec)
        return out

    return call


def binary(
    op: Op, otherwise: Callable[[Any, Any], Expression | None] | None = None
) -> Callable[[Any, Any], Expression]:
    """The fast way for ops of two operands and no attributes.

    Args:
        otherwise: makes what the op is not made for of several nodes, or returns None; asked at first calls.
    """
    entries: dict[Any, dict[Any, tuple[int, Any]]] = {}

    def call(a: Any, b: Any) -> Expression:
        try:
            type_id, spec = entries[a.spec][b.spec]
        except (KeyError, AttributeError):
            pass
        else:
            graph = a.graph
            if b.graph is graph:
                args = graph.args
                args.append(a.id)
                args.append(b.id)
            elif b.graph is None:  # a parameter
                graph.args.append(a.id)
            elif graph is None:
                graph = b.graph
                graph.args.append(b.id)
            else:
                return remember(a, b)
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            return Expression(graph, node, spec)
        return remember(a, b)

    def remember(a: Any, b: Any) -> Expression:
        if b.__class__ in (int, float) and a.__class__ is Expression:
            return call(a, number(a.graph, b))
        if a.__class__ in (int, float) and b.__class__ is Expression:
            return call(number(b.graph, a), b)
        if b.__class__ is np.ndarray and a.__class__ is Expression:
            return call(a, array_input(a.graph, b))
        if a.__class__ is np.ndarray and b.__class__ is Expression:
            return call(array_input(b.graph, a), b)
        found = None if otherwise is None else otherwise(a, b)
        if found is not None:
            return found
        out = record(op, (a, b))
        # Only what contains an expression: two parameters alone do not say which graph they go to.
        if Expression in (a.__class__, b.__class__) and hasattr(a, "spec") and hasattr(b, "spec"):
            type = node_type(op, (), (a.spec, b.spec))
            entries.setdefault(a.spec, {})[b.spec] = (type.id, out.spec)
            if isinstance(a.spec, ParameterSpec):
                a.spec.enters(entries, a.spec)
            if isinstance(b.spec, ParameterSpec):
                b.spec.enters(entries[a.spec], b.spec)
        return out

    return call


def attributed(
    op: Op,
    attributes_of: Callable[[Any, Any], dict[str, Any]],
    default: Any = None,
    otherwise: Callable[[Any, Any], Any] | None = None,
) -> Callable[..., Any]:
    """The fast way for ops of one operand and an argument: an axis, a slope, or several in a tuple.

    Args:
        attributes_of: (spec, argument) -> the op's attributes; checks what a caller gave. It runs once for each spec
            and argument.
        default: of the argument.
        otherwise: makes what the op is not made for of several nodes, or returns None; asked where x is no expression.
    """
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any, argument: Any = default) -> Any:
        try:
            type_id, spec = entries[x.spec, argument, kinds(argument)]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            graph = x.graph
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            graph.args.append(x.id)
            return Expression(graph, node, spec)
        return remember(x, argument)

    def remember(x: Any, argument: Any) -> Any:
        found = None if otherwise is None else otherwise(x, argument)
        if found is not None:
            return found
        node = to_expression(op.name, x)
        type = node_type(op, tuple(attributes_of(node.spec, argument).items()), (node.spec,))
        if is_told(argument):
            entries[node.spec, argument, kinds(argument)] = (type.id, type.out)
        return node.graph.add(type, (node.id,))

    return call


def described(
    op: Op, attributes_of: Callable[[tuple[Any, ...], Any], dict[str, Any]] = lambda specs, argument: {}
) -> Callable[..., Expression]:
    """The fast way for ops of a few operands and several arguments, each in a tuple.

    Args:
        attributes_of: as of `attributed`, given the specs of all operands.
    """
    entries: dict[Any, tuple[int, Any]] = {}

    def call(operands: tuple[Any, ...], argument: tuple[Any, ...] = ()) -> Expression:
        try:
            key: list[Any] = [argument, *map(type, argument)]
            graph: Any = None
            ids = []
            for x in operands:
                key.append(x.spec)
                if x.graph is None:  # a parameter
                    continue
                if graph is None:
                    graph = x.graph
                elif x.graph is not graph:
                    return remember(operands, argument)
                ids.append(x.id)
            type_id, spec = entries[tuple(key)]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            graph.args += ids
            return Expression(graph, node, spec)
        return remember(operands, argument)

    def remember(operands: tuple[Any, ...], argument: tuple[Any, ...]) -> Expression:
        graph = graph_of(op.name, operands)
        given = tuple(to_operand(op.name, graph, x) for x in operands)
        specs = tuple(x.spec for x in given)
        out = record(op, given, **attributes_of(specs, argument))
        if Expression in map(type, given) and is_told(argument):
            key = (argument, *map(type, argument), *specs)
            entries[key] = (graph.type_of(out).id, out.spec)
            for spec in specs:
                if isinstance(spec, ParameterSpec):
                    spec.enters(entries, key)
        return out

    return call


def viewer(op: Op, attributes_of: Callable[[Any, Any], dict[str, Any]], name: str = "") -> Callable[..., Expression]:
    """The fast way for views; `attributes_of` as in `attributed`, `name` what messages call it, if not as the op."""
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any, argument: Any = None) -> Expression:
        try:
            step, spec = entries[x.spec, x.id >> NODE_BITS, argument, kinds(argument)]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            return Expression(x.graph, x.id + step, spec)
        return remember(x, argument)

    def remember(x: Any, argument: Any) -> Expression:
        seen = to_expression(name or op.name, x)
        out = look(seen, op, tuple(attributes_of(seen.spec, argument).items()))
        if (out.id - seen.id) & NODE_MASK == 0 and is_told(argument):  # the same node: a view, no copy
            entries[seen.spec, seen.id >> NODE_BITS, argument, kinds(argument)] = (out.id - seen.id, out.spec)
        return out

    return call


def variadic(op: Op) -> Callable[[Iterable[Any]], Expression]:
    """The fast way for reductions over a list of expressions of one shape."""
    entries: dict[Any, tuple[int, Any]] = {}

    def call(xs: Any) -> Expression:
        try:
            graph, first = xs[0].graph, xs[0].spec
            type_id, spec = entries[first]
            for x in xs:
                if x.graph is not graph or x.spec is not first:
                    return remember(xs)
        except (KeyError, AttributeError, TypeError, IndexError):
            pass
        else:
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            graph.args.append(len(xs))
            graph.args += [x.id for x in xs]
            return Expression(graph, node, spec)
        return remember(xs)

    def remember(xs: Iterable[Any]) -> Expression:
        found = listed(op.name, xs)
        type = node_type(op, (), (found.spec_of_each,))
        entries[found.spec_of_each] = (type.id, type.out)
        return found.graph.add(type, [len(found), *found.ids])

    return call


def indexed(op: Op, check: Callable[[Any, int, str], int] = checked_index) -> Callable[[Any, int], Expression]:
    """The fast way for ops of a vector and an index into it, or a label (`check`)."""
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any, index: int) -> Expression:
        try:
            type_id, spec = entries[x.spec]
            if index.__class__ is not int or not 0 <= index < x.spec.shape[0]:
                return remember(x, index)
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            graph = x.graph
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            args = graph.args
            args.append(x.id)
            args.append(index)
            return Expression(graph, node, spec)
        return remember(x, index)

    def remember(x: Any, index: int) -> Expression:
        x = to_expression(op.name, x)
        type = node_type(op, (), (x.spec,))
        entries[x.spec] = (type.id, type.out)
        return x.graph.add(type, (x.id, check(index, x.spec.shape[0], f"{op.name}({x.spec!r}, {shown(index)})")))

    return call
