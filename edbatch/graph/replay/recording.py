"""What was recorded, ready to be appended to any graph."""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.exact import exact
from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.block import Block, BlockWriter
from edbatch.graph.cell.trace import Constant, FunctionGraph
from edbatch.graph.cell.tree import TreeDef
from edbatch.graph.columns import Columns, nodes_of
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.record import constant_node, node_of_parameter, number
from edbatch.graph.sources import INPUT
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, look_through, steps_of

OVERHEAD = 2500  # bytes of a recording and what finds it, without what is in it


class ReplayGraph(FunctionGraph):
    """The graph that a replayed function records in when its sample is new."""

    __slots__ = ("target",)

    no_value = (
        " reads a value; what it records is kept, so it must not depend on computed values: read them after it has "
        "returned, or leave the decorator away"
    )

    def __init__(self, name: str, target: Columns) -> None:
        super().__init__(name, target.dtype, target.options, expression_class=target.expression_class)
        self.target = target

    def compile(self, *of_cell: Any) -> Any:
        """As the graph that is recorded for."""
        return self.target.compile(*of_cell)


class Leaf(NamedTuple):
    """An expression that is returned: what is added to its id, as for operands. Of an array, all are arrays."""

    number: Any
    base: Any
    spec: Spec

    def found(self, graph: Columns, bases: list[int]) -> Expression:
        """What is returned in a graph."""
        if self.base.__class__ is int:
            return graph.expression_class(graph, self.number + bases[self.base], self.spec)
        ids = self.number + np.array(bases, np.int64)[self.base]
        made: Expression = array_graph(graph, len(ids)).leaf(ids, self.spec)
        return made


class Recording:
    """What was recorded, and what a call needs to append it.

    Attributes:
        block: the nodes; its results are the ids of what is returned.
        arguments: of those that are read, the number of the argument, and the view that it is seen through.
        constants: see `_maker`.
        leaves, tree: what is returned.
        single: if nothing has to be found for a call, and one expression is returned: the blocks, its id and its spec.
    """

    __slots__ = ("_columns", "arguments", "block", "constants", "inputs", "leaves", "single", "tree")

    def __init__(self, graph: ReplayGraph, n_arguments: int, leaves: list[Expression], tree: TreeDef) -> None:
        ids = [x.ids.tolist() if isinstance(x, ExpressionArray) else [x.id] for x in leaves]
        taken = graph.take()  # after what waited in arrays
        if len(taken.types) != graph.n:
            raise EdBatchError(f"{graph.name}: recording was interrupted")
        writer = _Writer(graph, n_arguments)
        writer.read(nodes_of(*(x.tolist() for x in taken[:3])))
        results = [[writer.operand(id) for id in of] for of in ids]
        self.leaves = []
        for x, pairs in zip(leaves, results, strict=True):
            is_array = isinstance(x, ExpressionArray)
            number, base = np.array(pairs, np.int64).reshape(-1, 2).T.copy() if is_array else pairs[0]
            self.leaves.append(Leaf(number, base, x.spec))
        self.arguments = [key for key in writer.arguments if key.__class__ is tuple]
        self.constants = [_maker(key) for key in graph.constants]
        self.inputs = graph.inputs
        keys = [*self.arguments, *map(Constant, range(len(self.constants))), INPUT]
        column = {key: at for at, key in enumerate(keys)}
        self._columns = [column[key] for key in writer.arguments]
        columns = [(-1, at) for at in self._columns]
        self.block: Block = writer.block(chain.from_iterable(results), columns, graph.drawn, taken.lines)
        self.tree = tree
        needs = self.inputs or graph.drawn or self.constants or self.arguments
        is_single = tree.kind is None and not needs and self.leaves[0].base.__class__ is int
        self.single = ((self.block,), self.leaves[0].number, self.leaves[0].spec) if is_single else None

    @property
    def bytes(self) -> int:
        """That it takes, about."""
        return OVERHEAD + sum(map(len, self.block[:5])) + sum(x.nbytes + 100 for x in self.inputs)

    def is_like(self, other: Recording) -> bool:
        """Whether both record the same."""
        return (
            self.block[:6] == other.block[:6]
            and self.arguments == other.arguments
            and exact((self.tree, *self.constants)) == exact((other.tree, *other.constants))  # with numbers and texts
            and [x.spec for x in self.leaves] == [x.spec for x in other.leaves]
            and [x.tobytes() for x in self.inputs] == [x.tobytes() for x in other.inputs]
        )

    def append(self, graph: Columns, arguments: list[Expression]) -> Any:
        """Append the nodes to a graph, and return what the function did; `arguments` are of this graph."""
        if self.single is not None:
            blocks, id_, spec = self.single
            return graph.expression_class(graph, graph.place(blocks) + id_, spec)
        columns = [_seen(arguments[at], view) for at, view in self.arguments]  # which may record copies
        found = graph.constants
        columns += [found[key][0] if key in found else make(graph, *of).id for key, make, *of in self.constants]
        columns.append(len(graph.inputs))
        graph.inputs.extend(self.inputs)
        bases = [0, graph.place((self.block,), columns, self.block.n_draws), 0, *[columns[at] for at in self._columns]]
        return self.tree.build([leaf.found(graph, bases) for leaf in self.leaves])


def _seen(x: Expression, view: int) -> int:
    """The id of an argument seen through a view."""
    if not view or x.id <= NODE_MASK:
        return x.id + (view << NODE_BITS)
    return look_through(x, steps_of(view)).id


def _maker(key: Any) -> tuple[Any, ...]:
    """The key under which a graph has a constant (None: no key lives as long), what makes it there, and of what."""
    if isinstance(key, tuple) and isinstance(key[0], Parameter):
        return None, node_of_parameter, key[0].spec, key[2]
    if isinstance(key, tuple) and isinstance(key[0], Op):
        return key, constant_node, *key
    return key, number, key if isinstance(key, float) else struct.unpack("<d", key[1])[0]


class _Writer(BlockWriter):
    """Numbers what was recorded, without arguments, which are the first nodes, and constants."""

    def __init__(self, graph: ReplayGraph, n_arguments: int) -> None:
        self._constants = {id: Constant(at) for at, (id, _) in enumerate(graph.constants.values())}
        super().__init__({*range(n_arguments), *self._constants})

    def integer(self, type: NodeType, x: int) -> tuple[int, Any]:
        """Inputs of all recordings are numbered by the graph."""
        return (x, INPUT) if type.op is INPUT else super().integer(type, x)

    def elsewhere(self, id: int) -> tuple[int, Any]:
        """An argument and its view, or a constant."""
        node = id & NODE_MASK
        constant = self._constants.get(node)
        return (0, (node, id >> NODE_BITS)) if constant is None else (id - node, constant)
