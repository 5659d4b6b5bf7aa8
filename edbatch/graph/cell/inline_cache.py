"""The inline cache of a cell: what its owner's last call recorded, which a call like it records without a look-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.graph.cell.entry import GuardedTrace
from edbatch.graph.cell.keywords import text_of
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, integers
from edbatch.graph.opened import graphs
from edbatch.graph.record import to_node, to_operand
from edbatch.graph.step import MISSING

if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

#: Arguments of a call that is recorded in C, at most.
MOST = 16

_ARRAYS = frozenset([ExpressionArray, Integers, np.ndarray])  # which may give each entry its own


class InlineCache:
    """What an owner's last call recorded.

    Attributes:
        found: the trace that was right then.
        call: per argument its spec, or the size that an integer is below; the type's id, the form of what is returned,
            and what that is made of; the graph's dtype and serial number; what attributes of the owner held that every
            call looks at. A plain tuple, which C reads.
        variant: of the graph's options.
    """

    __slots__ = ("call", "found", "variant")

    def __init__(self, found: Any = None, graph: Any = None, watched: tuple[Any, ...] = ()) -> None:
        self.found: GuardedTrace | None = found
        self.call: tuple[Any, ...] = ()
        self.variant = ""
        if found is not None:
            self.call = *found.trace.specs, *found.trace.node, graph.dtype, found.serial, *watched
            self.variant = graph.options.variant

    def holds(self, owner: Any, graph: Columns) -> bool:
        """Whether it is right in another graph, of this owner: a shallow copy has the same, and its own parameters."""
        found = self.found
        if found is None or self.variant != graph.options.variant or not found.holds(graph, owner):
            return False
        graph.note(found.guard, owner, None, found.guard.looks)
        found.serial = graph.serial
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return InlineCache, ()


def caller_in_python(cell: Cell) -> Callable[..., Any]:
    """The caller that records what is like the owner's last call, and has the cell do the rest.

    The caller in C does the same for most calls, and asks this one otherwise.
    """
    top, names, function, own, slow = graphs.top.get, cell.last_names, cell.function, vars(cell), cell.call

    def call(*args: Any, **static: Any) -> Any:
        given, n = (args[1:], len(args) - 1) if cell.is_method else (args, len(args))
        graph: Any = None
        for x in given:
            if isinstance(x, Expression):
                graph = x.graph
                break
        graph = graph or top().value
        if graph is None:
            return slow(args, static)
        if graph.careful:
            if graph.inlines and _ARRAYS.isdisjoint(map(type, given)):
                return returned(graph, function(*args, **static))
            return slow(args, static)
        try:
            name = names[n] + text_of(static) if static else names[n]
            kept = own
            if cell.is_method:
                kept = cell.kept_apart[id(args[0])] if isinstance(args[0], type) else args[0].__dict__
            known, watched = kept[name].call, cell.watched
            if known[n + 3] is not graph.dtype or len(known) != n + 5 + len(watched):
                return slow(args, static)
        except (AttributeError, KeyError, IndexError):  # of an owner that was copied, it is empty
            return slow(args, static)
        if known[n + 4] is not graph.serial:
            if not kept[name].holds(args[0] if cell.is_method else cell, graph):
                return slow(args, static)
            kept[name] = InlineCache(kept[name].found, graph, known[n + 5 :])
            return cell.fast(*args, **static)
        ids, numbers = [], []
        for at, x in enumerate(given):
            if isinstance(x, Expression):
                if x.spec is not known[at] or x.graph is not graph:
                    return slow(args, static)
                ids.append(x.id)
            elif (index := _index_below(known[at], x, graph)) is not None:
                numbers.append(index)
            else:
                return slow(args, static)
        for at, attribute in enumerate(watched, n + 5):
            if kept.get(attribute, MISSING) is not known[at]:
                return slow(args, static)
        type_id, form, out = known[n : n + 3]
        node = graph.n
        graph.n = node + 1
        graph.types.append(type_id)
        graph.operands += ids
        if numbers:
            graph.integers += numbers
        expression = graph.expression_class
        if form == 1:
            return expression(graph, node, out)
        if form == 2:
            step, spec, other_step, other = out
            return expression(graph, node + step, spec), expression(graph, node + other_step, other)
        return out.recorded(graph, node)

    return call


def _index_below(size: Any, x: Any, graph: Any) -> Any:
    """Return an integer, or an array of some, as a node has it; None if it is none, or out of range."""
    index = x if x.__class__ is int else integers(x)
    if size.__class__ is not int:
        return None
    if index.__class__ is Integers:
        return index if index.largest < size and index.count == getattr(graph, "count", -1) else None
    return index if index.__class__ is int and 0 <= index < size else None


def returned(graph: Columns, found: Any) -> Any:
    """What an inlined function returns, with parameters, numbers and arrays as expressions."""
    if isinstance(found, Expression):
        return found
    leaves, tree = flatten(found)
    of_graph = [x if _is_expression(x) else to_node(graph, to_operand("result", graph, x)) for x in leaves]
    return tree.build(of_graph)


def _is_expression(x: Any) -> bool:
    return isinstance(x, Expression)
