"""Give back what no program can reach any more, while the others go on.

A graph that `run` has opened by itself is nobody else's: now and then, the values that programs can still reach are
moved to a new graph, as inputs, and the old one gives back its memory. So memory follows what is in flight, not what
has ever run. Expressions that were hidden from the search (in a global, say) are of the old graph, which refuses them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from edbatch.base.context_stack import OpenContext
from edbatch.graph.cell.cell import Cell
from edbatch.graph.cell.entry import CellTrace
from edbatch.graph.cell.inline_cache import InlineCache
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.expression_list import ExpressionList
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.record import array_input
from edbatch.graph.recorder import CALLERS
from edbatch.runtime.graph import Graph, forward

LEAST_NODES = 20_000  # in a graph before it pays to look
BYTES = 1600  # of values that count as a node
NODES = 2  # that run for each object that is looked at, at least
GIVEN_BACK = (
    "its values were given back, as no program of `run` could reach them; open a graph, `with eb.Graph():`, around "
    "`run` to keep all values, for gradients or to read them later"
)


class Forgetting:
    """Decides when to move on to a new graph, and does it.

    That follows from what has run and from how many objects there were to look at, not from a clock: to look at one
    takes a small part of what a node takes, so looking takes a small part of the time, on a busy machine as well.

    Args:
        graph: that `run` has opened.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self._least = graph, float(LEAST_NODES)

    @property
    def _work(self) -> float:
        """How much has run in this graph, in nodes."""
        return self.graph.n + self.graph.memory_bytes / BYTES

    def due(self) -> bool:
        """Whether there is much in the graph, most of it perhaps out of reach."""
        return self._work >= self._least

    def move(self, roots: Iterable[Any]) -> Graph:
        """Move what can be reached from some objects to a new graph, which takes the old one's place.

        Where there are arrays of expressions it is not tried: they stand for nodes that lie side by side in the old.
        """
        old = self.graph
        found = reachable(roots, old)
        if found is None:
            self._least = 2 * self._work
            return old
        expressions, lists, looks = found
        by_id = {expression.id: expression for expression in expressions}
        values = forward(list(by_id.values())) if by_id else []
        new = old.successor(GIVEN_BACK)
        moved: dict[int, Expression] = {}
        for number, value in zip(by_id, values, strict=True):
            moved[number] = array_input(new, value)
        for expression in expressions:
            to = moved[expression.id]
            expression.graph, expression.id, expression.spec = new, to.id, to.spec
        for listed in lists:
            listed.graph, listed.spec_of_each, listed.ids = new, listed[0].spec, [x.id for x in listed]
        kept = new.n + sum(value.nbytes for value in values) / BYTES
        self.graph, self._least = new, max(NODES * looks, LEAST_NODES + 2 * kept)
        return new


# What holds no expression of a program, and much else. A function is reached without its globals.
_ENDS = (ModuleType, type, CodeType, BuiltinFunctionType, Columns, OpenContext, Parameter, ParameterCollection)
# What leads to all types of the process.
_OF_CELLS = (CellTrace, InlineCache, NodeType, Op)
_PLAIN = frozenset([int, float, str, bytes, bool, complex, type(None), range])


def reachable(roots: Iterable[Any], graph: Columns) -> tuple[list[Expression], list[ExpressionList], float] | None:
    """All expressions of a graph, and lists of them, that can be reached from some objects; None: arrays of them, too.

    Args:
        roots: programs that wait, what they wait for, what others have returned.
        graph: expressions of others are not looked at.

    Returns:
        These, and how many objects were looked at; of numbers and texts, an eighth.
    """
    expressions: list[Expression] = []
    lists: list[ExpressionList] = []
    waiting = list(roots)
    seen = {id(waiting), id(expressions), id(lists)}
    looks = 0
    while waiting:
        found = waiting.pop()
        looks += 1
        if found.__class__ in _PLAIN or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, Expression):
            if isinstance(found, ExpressionArray):
                if found.graph.base is graph:
                    return None
            elif found.graph is graph:
                expressions.append(found)
            continue
        if isinstance(found, ExpressionList) and found.graph is graph:
            lists.append(found)
        waiting.extend(_held(found))
    return expressions, lists, len(seen) + looks / 8


def _held(found: Any) -> Iterator[Any]:
    """What an object refers to."""
    if isinstance(found, np.ndarray):
        if found.dtype.hasobject:
            yield from found.flat
    elif isinstance(found, FunctionType):
        yield from (found.__closure__, found.__defaults__, found.__kwdefaults__, found.__dict__)
    elif isinstance(found, CALLERS):
        yield found.__wrapped__
    elif isinstance(found, Cell):
        yield found.function
    elif not isinstance(found, _ENDS + _OF_CELLS):
        yield from gc.get_referents(found)
