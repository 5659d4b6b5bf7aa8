"""The inline cache of a cell: what its owner's last call recorded, which a call like it records without a look-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edbatch.graph.cell.entry import CellTrace
from edbatch.graph.cell.keywords import text_of
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers, integers
from edbatch.graph.opened import graphs
from edbatch.graph.record import to_node, to_operand
from edbatch.graph.step import MISSING

if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

#: Arguments of a call that is recorded in C, at most.
MOST = 16


class InlineCache(tuple[Any, ...]):
    """What an owner's last call recorded, as C reads it; nothing in a copy of the owner.

    It has per argument its spec, or the size that an integer is below; the type's id, the form of what is returned, and
    what that is made of; the graph's dtype and serial number; the trace that was right then, and for which options; and
    what attributes of the owner held that every call looks at.
    """

    __slots__ = ()

    @classmethod
    def of(cls, found: CellTrace, graph: Columns, watched: tuple[Any, ...]) -> InlineCache:
        """That of a trace that is right in a graph."""
        known = *found.node, graph.dtype, found.serial, found, graph.options.variant
        return cls((*found.specs, *known, *watched))

    def __reduce__(self) -> tuple[Any, ...]:
        return InlineCache, ()


def caller_in_python(cell: Cell) -> Callable[..., Any]:
    """The caller that records what is like the owner's last call, and has the cell do the rest.

    The caller in C does the same for most calls, and asks this one otherwise.
    """
    top, names, own, slow = graphs.top.get, cell.last_names, vars(cell), cell.call

    def call(*args: Any, **static: Any) -> Any:
        graph: Any = None
        known: Any = ()
        n = at = 0
        watched = cell.watched
        try:
            given, kept = args, own
            if cell.is_method:
                given, owner = args[1:], args[0]
                kept = cell.kept_apart[id(owner)] if isinstance(owner, type) else owner.__dict__
            n = len(given)
            name = names[n] + text_of(static) if static else names[n]
            known = kept[name]
            ids, numbers = [], []
            for x in given:  # `zip` takes longer than what is done here
                want = known[at]
                at += 1
                if want.__class__ is int:
                    numbers.append(x if x.__class__ is int and 0 <= x < want else _index_below(want, x))
                elif x.spec is want and (x.graph is graph or graph is None):
                    graph = x.graph
                    ids.append(x.id)
                else:
                    known = ()
                    break
            at = n + 7
            type_id, form, out, _, serial, found, variant = known[n:at]
        except (AttributeError, LookupError, ValueError):  # of an owner that was copied, the call is empty
            known = ()
        graph = graph or top().value
        if not known or graph is None or graph.careful or len(known) != at + len(watched):
            return slow(args, static)
        if serial is not graph.serial:
            owner = args[0] if cell.is_method else cell  # a shallow copy has the same, and its own parameters
            if variant != graph.options.variant or not found.holds(graph, owner):
                return slow(args, static)
            graph.note(found.guard, owner, None, found.guard.looks)
            found.serial = graph.serial
            kept[name] = InlineCache.of(found, graph, known[at:])
            return cell.fast(*args, **static)
        for attribute in watched:
            if kept.get(attribute, MISSING) is not known[at]:
                return slow(args, static)
            at += 1
        for x in numbers:
            if x.__class__ is Integers and x.count != getattr(graph, "count", -1):
                return slow(args, static)
        node = graph.append((type_id,), ids, numbers)
        expression = graph.expression_class
        if form == 1:
            return expression(graph, node, out)
        if form == 2:
            step, spec, other_step, other = out
            return expression(graph, node + step, spec), expression(graph, node + other_step, other)
        return out.recorded(graph, node)

    return call


def _index_below(size: int, x: Any) -> Any:
    """Return an integer, or an array of some, as a node has it.

    Raises:
        ValueError: it is none, or one is out of range.
    """
    index = integers(x)
    if index.__class__ is int and 0 <= index < size:
        return index
    if index.__class__ is Integers and index.largest < size:
        return index
    raise ValueError


def returned(graph: Columns, found: Any) -> Any:
    """What an inlined function returns, with parameters, numbers and arrays as expressions."""
    if isinstance(found, Expression):
        return found
    leaves, tree = flatten(found)
    nodes = [x if isinstance(x, Expression) else to_node(graph, to_operand("result", graph, x)) for x in leaves]
    return tree.build(nodes)
