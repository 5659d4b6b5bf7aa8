"""From a call on expressions to a node: what callers do not know (see `recorder`) is recorded here, and learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any, ParamSpec

from edbatch.base.exact import literal
from edbatch.base.signature import signature_of
from edbatch.errors import shown
from edbatch.graph.array_graph import each
from edbatch.graph.block import place_in_python
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.opened import graphs
from edbatch.graph.record import checked_index, converted, to_expression, type_of_call
from edbatch.graph.recorder import FIXED, VIEW, caller, connect
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, NODE_MASK, look

connect(Parameter, graphs.top, place_in_python)

P = ParamSpec("P")
Attributes = dict[str, Any]

_OPERANDS = (Expression, Parameter)
_MISSING: Any = object()
_MOST = 2**31  # of integers that are checked before


def recorded(
    op: Op,
    operands: int = 1,
    check: Callable[[Any, int, str], Any] | None = None,
    otherwise: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, Any]], Callable[P, Expression]]:
    """Make the caller of an op of a function, whose name, parameters and docstring it has.

    The function is given operands and arguments, checks them, and returns the attributes of the op, or the result, if
    it is not of the op. It runs once for operands of these specs and arguments that are these literals.

    Args:
        operands: how many of the function's parameters are operands, the first; the last is the node's integer, if the
            op has one, the others are arguments.
        check: the integer, as `checked_index` does; None: it is checked before.
        otherwise: makes what the op is not made for of several nodes, or returns None; asked at first calls.
    """

    def make(function: Any) -> Any:
        known: dict[Any, NodeType] = {}

        def slow(call: Any, *given: Any) -> Any:
            last = len(given) - op.payload
            xs, literals, integers = given[:operands], given[operands:last], given[last:]
            graph = _common(xs)
            if graph is None:
                return call(*converted(op, xs), *given[operands:])
            bound = 0
            if integers:
                x, index = each(xs[0], integers[0])
                xs, graph, bound = (x,), x.graph, x.spec.shape[0] if check is not None and x.spec.shape else _MOST
            specs, told = tuple([x.spec for x in xs]), literal(literals) if literals else True
            type = known.get((*specs, told))
            if type is None:
                attributes = function(*given)
                if not isinstance(attributes, dict):
                    return attributes
                type = type_of_call(graph, op, attributes, specs)
                if told is not None:
                    known[(*specs, told)] = type
                    for spec in specs:
                        if isinstance(spec, ParameterSpec):
                            spec.enters(known, (*specs, told))
            if told is not None and not graph.holds_objects:
                call.learn(specs, type.id, type.out, literals, 0, 0, bound)
            if integers and check is not None:
                place = op.name if isinstance(index, Integers) else f"{op.name}({specs[0]!r}, {shown(index)})"
                index = check(index, bound, place)
            return graph.add(type, [x.id for x in xs if x.graph is not None], (index,) if integers else ())

        return _caller(FIXED, function, slow, otherwise, operands, op.payload > 0)

    return make


def _caller(kind: int, function: Any, slow: Any, otherwise: Any, operands: int = 1, has_integer: bool = False) -> Any:
    """The caller that is called like a function; `slow` is given it, and all arguments in their order."""
    parameters = signature_of(function).parameters
    names, defaults = tuple(parameters), {name: p.default for name, p in parameters.items() if p.default is not p.empty}

    def completed(*given: Any, **keywords: Any) -> Any:
        if len(given) != len(names) or keywords:
            left, args = dict(keywords), given
            given = *args, *[left.pop(name, defaults.get(name, _MISSING)) for name in names[len(args) :]]
            if left or len(given) > len(names) or any(x is _MISSING for x in given):
                function(*args, **keywords)  # whose error says what is wrong
        found = None if otherwise is None else otherwise(*given)
        return slow(call, *given) if found is None else found

    call = caller(kind, completed, names, operands, has_integer, tuple(defaults.values()))
    return called_as(call)(function)


def called_as(call: Any) -> Callable[[Callable[P, Any]], Callable[P, Expression]]:
    """Give a caller the name, signature and docstring of a function; one around it would cost a third of the call."""

    def name(function: Any) -> Any:
        function.__annotations__["return"] = "Expression"
        return update_wrapper(call, function)

    return name


def _common(xs: Iterable[Any]) -> Any:
    """The graph that operands are of, if they are expressions and parameters and at least one is of a graph."""
    graph = None
    for x in xs:
        if x.__class__ is not Expression and not isinstance(x, _OPERANDS):
            return None
        of = x.graph
        if of is not graph and of is not None:
            if graph is not None:
                return None
            graph = of
    return graph


def viewed(
    op: Op, otherwise: Callable[..., Any] | None = None
) -> Callable[[Callable[P, Any]], Callable[P, Expression]]:
    """Make the caller of a view of a function, as `recorded` does; it may return several attributes, for a list."""

    def make(function: Any) -> Any:
        known: dict[Any, Any] = {}

        def slow(call: Any, x: Any, *given: Any) -> Any:
            if not isinstance(x, Expression):
                return call(to_expression(function.__name__, x), *given)
            told, view = literal(given), x.id >> NODE_BITS
            entry: Any = known.get((x.spec, view, told))
            if entry is None:
                found = _seen(x, op, function(x, *given))
                parts = [(part.id - x.id, part.spec) for part in (found if isinstance(found, list) else [found])]
                if told is None or any(step & NODE_MASK for step, _ in parts):  # a copy is no view
                    return found
                entry = known[x.spec, view, told] = (0, tuple(parts)) if isinstance(found, list) else parts[0]
            call.learn((x.spec,), 0, entry[1], given, view, entry[0])
            expression = x.graph.expression_class
            if entry[1].__class__ is tuple:
                return [expression(x.graph, x.id + step, spec) for step, spec in entry[1]]
            return expression(x.graph, x.id + entry[0], entry[1])

        return _caller(VIEW, function, slow, otherwise)

    return make


def _seen(x: Expression, op: Op, attributes: Any) -> Any:
    """What views of these attributes show; anything else is what is shown."""
    if isinstance(attributes, list):
        return [_seen(x, op, one) for one in attributes]
    return look(x, op, tuple(attributes.items())) if isinstance(attributes, dict) else attributes


def looked_up(function: Any) -> Any:
    """Make the caller of a function of a table and an index into it, which records what the caller does not know."""
    return caller(FIXED, function, ("table", "index"), has_integer=True)


def named(op: Op, function: Any) -> Any:
    """A function under the name of an op, for errors."""
    function.__name__ = function.__qualname__ = op.name
    return function


def unary(op: Op) -> Callable[[Any], Expression]:
    """The caller of ops of one operand and no attributes."""

    def function(x: Any) -> Attributes:
        return {}

    return recorded(op)(named(op, function))


def binary(
    op: Op, otherwise: Callable[[Any, Any], Expression | None] | None = None
) -> Callable[[Any, Any], Expression]:
    """The caller of ops of two operands and no attributes; `otherwise` as of `recorded`."""

    def function(a: Any, b: Any) -> Attributes:
        return {}

    return recorded(op, 2, otherwise=otherwise)(named(op, function))


def indexed(op: Op, check: Callable[[Any, int, str], Any] = checked_index) -> Callable[[Any, int], Expression]:
    """The caller of ops of a vector and an index into it, or a label (`check`)."""
    return recorded(op, 1, check)(named(op, lambda x, index: {}))
