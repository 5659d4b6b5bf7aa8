"""The inline cache of a cell: what its owner's last call recorded, which a call like it records without a look-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.numbers import is_real
from edbatch.graph.cell.entry import GuardedTrace
from edbatch.graph.cell.keywords import text_of
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, integers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.opened import graphs
from edbatch.graph.record import to_node, to_operand
from edbatch.graph.step import MISSING

if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

#: What `repeated` returns for a call that is not like the last one.
NEW: Any = object()

_ARRAYS = (ExpressionArray, Integers, np.ndarray)  # which may give each entry its own


class InlineCache:
    """What an owner's last call recorded.

    Attributes:
        trace: what was right then.
        call: per argument what it has to be (a spec, or the size that an integer is below), the type's id, the form of
            what is returned and what that is made of, the graph's dtype and serial number, and values of attributes of
            the owner that every call looks at. A plain tuple, which C reads.
    """

    __slots__ = ("call", "trace")

    def __init__(self, trace: GuardedTrace | None = None, dtype: Any = None, watched: tuple[Any, ...] = ()) -> None:
        self.trace = trace
        self.call: tuple[Any, ...] = ()
        if trace is not None:
            x = trace.trace
            self.call = *x.specs, x.type.id, x.form, x.out, dtype, trace.serial, *watched

    def holds(self, owner: Any, graph: Columns) -> bool:
        """Whether it is right in another graph, too.

        A shallow copy of the owner has the same one, and may have other parameters since.
        """
        found = self.trace
        if found is None or not found.holds(graph, owner):
            return False
        graph.note(found.guard, owner, None, found.guard.looks)
        found.serial = graph.serial
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return InlineCache, ()


def repeated(cell: Cell, args: tuple[Any, ...], static: dict[str, Any]) -> Any:
    """Record a call that is like the last one of its owner, and return what the function does; else return `NEW`.

    The caller in C does the same for most calls by itself.
    """
    given = args[cell.is_method :]
    graph: Any = next((x.graph for x in given if isinstance(x, Expression)), None) or graphs.top.get().value
    if graph is not None and graph.inlines and not any(x.__class__ in _ARRAYS for x in given):
        return returned(graph, cell.function(*args, **static))
    owner: Any = args[0] if cell.is_method and args else cell
    try:
        kept = cell.kept_apart[id(owner)][1] if isinstance(owner, type) else owner.__dict__
        name = cell.last_name(len(given), graph, static)
        last = kept[name]
        *wanted, type_id, form, out, dtype, serial = last.call[: len(given) + 5]
        watched = last.call[len(given) + 5 :]
    except (AttributeError, KeyError, ValueError):  # no graph, no last call, or one of an owner that was copied
        return NEW
    ids, numbers = [], []
    for want, x in zip(wanted, given, strict=True):
        if isinstance(x, Expression):
            if x.spec is not want or x.graph is not graph:
                return NEW
            ids.append(x.id)
        else:
            index = integers(x)
            if want.__class__ is not int or not _is_below(index, want, graph):
                return NEW
            numbers.append(index)
    if dtype is not graph.dtype or len(watched) != len(cell.watched):
        return NEW
    for attribute, value in zip(cell.watched, watched, strict=True):
        if kept.get(attribute, MISSING) is not value:
            return NEW
    if serial is not graph.serial:
        if not last.holds(owner, graph):
            return NEW
        kept[name] = InlineCache(last.trace, dtype, watched)
    node = graph.n
    graph.n = node + 1
    graph.types.append(type_id)
    graph.operands += ids
    graph.integers += numbers
    if form == 1:
        return graph.expression_class(graph, node, out)
    return last.trace.trace.recorded(graph, node)


def _is_below(index: Any, size: int, graph: Any) -> bool:
    if index.__class__ is Integers:
        return bool(index.largest < size and index.count == getattr(graph, "count", -1))
    return index.__class__ is int and 0 <= index < size


def returned(graph: Columns, found: Any) -> Any:
    """What a body that is recorded where it is called returns; other operands become expressions, as in a cell."""
    if isinstance(found, Expression) or (found.__class__ is tuple and all(map(_is_expression, found))):
        return found
    leaves, tree = flatten(found)
    if all(map(_is_expression, leaves)):
        return found
    return tree.build([_as_expression(graph, x) for x in leaves])


def _is_expression(x: Any) -> bool:
    return isinstance(x, Expression)


def _as_expression(graph: Columns, x: Any) -> Any:
    is_operand = isinstance(x, Parameter | np.ndarray) or is_real(x)
    return to_node(graph, to_operand("result", graph, x)) if is_operand else x
