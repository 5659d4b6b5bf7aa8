"""From a call on lists of expressions to nodes; see `op_callers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from edbatch.base.exact import literal
from edbatch.errors import EdBatchError
from edbatch.graph.block import one_node
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.expression_list import ExpressionList, listed
from edbatch.graph.node_type import NodeType, node_type
from edbatch.graph.number_warnings import note_numbers
from edbatch.graph.op import Op
from edbatch.graph.record import graph_of, to_node, to_operand
from edbatch.graph.recorder import LIST, caller


def variadic(op: Op, called: str = "") -> Callable[[Iterable[Any]], Expression]:
    """The caller of reductions over a list of expressions of one shape.

    Args:
        called: what users call it, for errors; by default the name of the op.
    """

    def slow(xs: Iterable[Any]) -> Expression:
        if isinstance(xs, ExpressionArray):
            return of_array(xs)
        found = listed(called or op.name, xs)
        type = node_type(op, (), (found.spec_of_each,))
        call.learn((found.spec_of_each,), type.id, type.out)
        return found.graph.add(type, [len(found), *found.ids])

    def of_array(xs: ExpressionArray) -> Expression:
        if not len(xs):
            raise EdBatchError(f"{called or op.name} of {xs!r}: expected at least one expression")
        type, base = node_type(op, (), (xs.spec,)), xs.graph.base
        assert base is not None
        pairs = np.zeros((1 + len(xs), 2), np.int64)  # of which none is added to anything
        pairs[0, 0], pairs[1:, 0] = len(xs), xs.ids
        node = base.place((one_node(type, 0)._replace(operands=pairs.tobytes()),))
        return base.expression_class(base, node, type.out)

    call = caller(LIST, slow, ("xs",))
    return call


def over(
    op: Op, attributes_of: Callable[[Any, Any], dict[str, Any]] = lambda single, argument: {}
) -> Callable[..., Expression]:
    """The caller of ops of two lists of one length, of an operand before them, if the op has one, and of arguments.

    What is called takes the operand, or None, the lists, and the arguments in a tuple.

    Args:
        attributes_of: (operand before the lists, arguments) -> the op's attributes.
    """
    known: dict[Any, NodeType] = {}

    def call(single: Any, one: Any, other: Any, argument: tuple[Any, ...] = ()) -> Expression:
        if one.__class__ is not ExpressionList or other.__class__ is not ExpressionList:
            first = listed(op.name, one, single.graph if isinstance(single, Expression) else None)
            one, other = first, first if other is one else listed(op.name, other, first.graph)
        graph = one.graph
        told = literal(argument) if argument else ()
        key = told, getattr(single, "spec", None), one.spec_of_each, other.spec_of_each
        type = known.get(key)
        is_of_graph = other.graph is graph and (not op.singles or getattr(single, "graph", None) is graph)
        if type is None or not is_of_graph or len(one) != len(other):
            attributes = tuple(attributes_of(single, argument).items())
            found = over_lists(op, (single,) * op.singles, (one, other), attributes)
            if told is not None and (not op.singles or isinstance(single, Expression)):
                known[key] = found.graph.type_of(found)
            return found
        before = [single.id] if op.singles else []
        return graph.add(type, [len(before) + 2 * len(one), *before, *one.ids, *other.ids])

    return call


def over_lists(
    op: Op, singles: tuple[Any, ...], lists: tuple[Iterable[Any], ...], attributes: tuple[tuple[str, Any], ...] = ()
) -> Expression:
    """Record an op over lists.

    Args:
        singles: its operands before the lists.
        lists: all of one length.
        attributes: of the type.

    Raises:
        EdBatchError: lists are empty or of several lengths, or operands do not fit.
    """
    expressions = [x for x in singles if isinstance(x, Expression)]
    read = [listed(op.name, xs, expressions[0].graph if expressions else None) for xs in lists]
    graph = read[0].graph
    if any(len(xs) != len(read[0]) for xs in read):
        lengths = " and ".join(str(len(xs)) for xs in read)
        raise EdBatchError(f"{op.name}: expected lists of one length, got {lengths}")
    graph_of(op.name, (*expressions, *(xs[0] for xs in read)))
    note_numbers(graph, op, dict(attributes))
    nodes = [to_node(graph, to_operand(op.name, graph, x)) for x in singles]
    type = node_type(op, attributes, (*(x.spec for x in nodes), *(xs.spec_of_each for xs in read)))
    ids = [id for xs in read for id in xs.ids]
    return graph.add(type, [len(nodes) + len(ids), *(x.id for x in nodes), *ids])
