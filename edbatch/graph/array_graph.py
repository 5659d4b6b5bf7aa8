"""The graph that arrays of expressions are in: each of its nodes stands for n nodes of another graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any
from weakref import ref

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.cell.trace import Payload
from edbatch.graph.columns import DAMAGED, Closed, Columns, nodes_of
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.integers import Integers, integers
from edbatch.graph.lines import LinedTypes
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.op import Kind
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS, look_through

# Nodes of the base, which may be seen through views: one of each entry, or one that all entries share.
Ids = np.ndarray | int


class ArrayGraph(Columns):
    """A graph of arrays: a node is recorded here once, and `count` times in the base before that runs.

    Recording is that of any graph, so that everything that takes expressions takes arrays. Among `integers` there may
    be arrays of `count` in the place of one.
    """

    __slots__ = ("_found", "count")

    base: Columns
    holds_objects = True

    def __init__(self, base: Columns, count: int) -> None:
        super().__init__(base=base)
        self.count = count
        self.expression_class = base.expression_class.of_arrays
        self.inputs = base.inputs
        self.inlines = base.inlines and count > 0  # of no entry, a cell says what it returns, and its body does not
        self._found: list[Ids] = []  # what stands for the first nodes in the base
        if isinstance(base.types, Closed):
            self.types = base.types

    def leaf(self, ids: Ids, spec: Spec) -> Any:
        """Expressions of the base, as an array; where all are seen through one view, so is what stands for them."""
        self.flush()
        view = 0
        if isinstance(ids, int):
            ids, view = ids & NODE_MASK, ids & ~NODE_MASK
        elif len(ids):
            views = ids & ~NODE_MASK
            view = int(views[0]) if (views == views[0]).all() else 0
            ids = ids - view
        node = len(self._found)  # and not `n`: an interrupt may have come between the two
        self._found.append(ids)
        self.n = node + 1
        return self.expression_class(self, node + view, spec)

    def placed(self, x: Expression) -> Any:
        """An expression of the base as an array, all of whose entries it is."""
        key = (x.id, x.spec)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.leaf(x.id, x.spec).id, x.spec
        return self.expression_class(self, *found)

    def take_draws(self, count: int) -> Sequence[Any]:
        """Integers for what is random: entry after entry, as if each was recorded by itself."""
        drawn = np.array(self.base.take_draws(count * self.count), np.int64)
        return [Integers(column) for column in drawn.reshape(self.count, count).T]

    def ids_of(self, id: int) -> np.ndarray:
        """Per entry the id in the base of an expression of this graph."""
        self.flush()
        return np.full(self.count, self._ids(id))

    def chosen(self, x: ExpressionArray, entries: Any) -> Any:
        """Some entries, as an array; by an integer, as one expression."""
        self.flush()
        found: Any = self._ids(x.id)
        if isinstance(found, int) or not isinstance(entries, int | slice):
            found = self.ids_of(x.id)
        found = found[entries]
        if isinstance(entries, int):
            return self.base.expression_class(self.base, int(found), x.spec)
        return array_graph(self.base, len(found)).leaf(found, x.spec)

    def may_mean_each(self, rows: int) -> bool:
        """Of more than one entry."""
        return rows == self.count > 1

    def type_of(self, expression: Expression) -> NodeType:
        """The type of the nodes that were recorded last."""
        return TYPES[self.types[(expression.id & NODE_MASK) - len(self._found)]]

    def flush(self) -> None:
        """Have the base record what was recorded here."""
        if not self.types:
            return
        if len(self._found) + len(self.types) != self.n:
            raise EdBatchError(DAMAGED)
        lines = iter(self.types.lines) if isinstance(self.types, LinedTypes) else repeat(None)
        for node in nodes_of(self.types, self.operands, self.integers):
            self._found.append(self._recorded(*node, next(lines)))
        self.types, self.operands, self.integers = self._new_columns()

    def _recorded(self, type: NodeType, operands: list[int], integers: list[Any], line: str | None) -> Ids:
        """What stands in the base for a node."""
        columns: list[Any] = [self._ids(id) for id in operands]
        columns += [x.values if x.__class__ is Integers else x for x in integers]
        if type.op.kind is Kind.SOURCE:  # which has one value for all entries
            return self.base.repeat(type, 1, columns, line)
        begin = self.base.repeat(type, self.count, columns, line)
        return np.arange(begin, begin + self.count)

    def _ids(self, id: int) -> Ids:
        node, view = id & NODE_MASK, id & ~NODE_MASK
        found: Any = self._found[node]
        if not view or found.__class__ is int or not (found > NODE_MASK).any():
            return found + view
        more = VIEWS[view >> NODE_BITS]  # of what is seen through several views, each through one more
        assert more is not None
        seen = (look_through(Expression(self.base, one, more.root), more.steps) for one in found.tolist())
        return np.array([x.id for x in seen], np.int64)


def array_graph(base: Columns, count: int) -> ArrayGraph:
    """The graph each of whose nodes stands for so many of another: one, as long as there are arrays in it."""
    held = base.array_graphs.get(count)
    found = None if held is None else held()
    if found is None:
        found = ArrayGraph(base, count)
        base.array_graphs[count] = ref(found)
    return found


def class_of_one(graph: Columns) -> type[Expression]:
    """The class of a graph's expressions; of arrays, that of their entries."""
    return graph.base.expression_class if isinstance(graph, ArrayGraph) else graph.expression_class


def each(x: Expression, index: Any) -> tuple[Expression, Any]:
    """What an index is into, and the index: where that is an array of integers, both for each entry of an array."""
    graph, index = numbered(x.graph, index)
    return x if graph is x.graph else graph.placed(x), index


def numbered(graph: Columns, index: Any) -> tuple[Any, Any]:
    """Where a node is recorded that has an index, and the index: for an array of integers, where arrays are."""
    index = integers(index)
    if isinstance(index, Payload):
        return index.graph or graph, index
    if not isinstance(index, Integers):
        return graph, index
    found = graph if isinstance(graph, ArrayGraph) else array_graph(graph, index.count)
    if found.count != index.count:
        raise EdBatchError(f"expected an integer for each of {found.count} entries, got {index.count}")
    return found, index


def entry(x: Any, at: int) -> Any:
    """Of an argument, what one entry is given."""
    if isinstance(x, ExpressionArray):
        graph: Any = x.graph  # and not `x[at]`, which another class of arrays may take for something else
        return graph.chosen(x, at)
    return int(x.values[at]) if x.__class__ is Integers else x
