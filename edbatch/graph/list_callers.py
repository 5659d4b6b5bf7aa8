"""From a call on lists of expressions to nodes; see `op_callers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from edbatch.base.exact import is_told
from edbatch.errors import EdBatchError
from edbatch.graph.block import one_node
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.expression_list import listed
from edbatch.graph.many_numbers import note_numbers
from edbatch.graph.node_type import NodeType, node_type
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

    What is called takes the operand, or None, the lists, the arguments in a tuple and their `kinds`. It raises an
    `EdBatchError` if lists are empty or of several lengths, or operands do not fit.

    Args:
        attributes_of: (operand before the lists, arguments) -> the op's attributes.
    """
    known: dict[Any, NodeType] = {}

    def call(single: Any, one: Any, other: Any, argument: tuple[Any, ...] = (), kinds: Any = ()) -> Expression:
        first = listed(op.name, one, single.graph if isinstance(single, Expression) else None)
        graph = first.graph
        second = first if other is one else listed(op.name, other, graph)
        if len(first) != len(second):
            raise EdBatchError(f"{op.name}: expected lists of one length, got {len(first)} and {len(second)}")
        if op.singles and not (single.__class__ is Expression and single.graph is graph):
            attributes_of(single, argument)  # or raise an error about what was given
            graph_of(op.name, (single, first[0], second[0]))
            single = to_node(graph, to_operand(op.name, graph, single))
        before = (single,) if op.singles else ()
        specs = *(x.spec for x in before), first.spec_of_each, second.spec_of_each
        key = argument, kinds, specs
        try:
            type = known[key]
        except (KeyError, TypeError):
            attributes = attributes_of(single, argument)
            note_numbers(graph, op, attributes)
            type = node_type(op, tuple(attributes.items()), specs)
            if is_told(argument):
                known[key] = type
        return graph.add(type, [len(before) + 2 * len(first), *(x.id for x in before), *first.ids, *second.ids])

    return call
