"""What was recorded, ready to be appended to any graph."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.exact import exact
from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.block import DRAW, NOTHING, BlockWriter, Pair
from edbatch.graph.cell.tree import TreeDef
from edbatch.graph.columns import Columns, Recorded, nodes_of
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import Op
from edbatch.graph.record import constant_node, node_of_parameter, number
from edbatch.graph.replay.recorder import DRAWN, Recorder
from edbatch.graph.sources import INPUT
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS, look

OVERHEAD = 2500  # bytes of a recording and what finds it, without what is in it


class Leaf(NamedTuple):
    """An expression that is returned: what is added to its id is found as for those of operands."""

    number: int
    base: int
    spec: Spec


class Leaves(NamedTuple):
    """The same of an array of them."""

    numbers: np.ndarray
    bases: np.ndarray
    spec: Spec


class Recording:
    """What was recorded, and what a call needs to append it.

    Attributes:
        block: the nodes; its results are the ids of what is returned.
        inputs: arrays of the input nodes.
        constants: what finds each in a graph.
        arguments: of those that are read, the number of the argument, and the view that it is seen through.
        leaves, form: what is returned.
        single: if nothing has to be found for a call, and one expression is returned, its id and spec.
    """

    __slots__ = ("_columns", "arguments", "block", "constants", "form", "inputs", "leaves", "single")

    def __init__(self, recorder: Recorder, leaves: list[Expression], form: TreeDef) -> None:
        ids = [x.ids.tolist() if isinstance(x, ExpressionArray) else [x.id] for x in leaves]
        taken = recorder.take()  # after what waited in arrays
        if len(taken.types) != recorder.n:
            raise EdBatchError(f"{recorder.name}: recording was interrupted")
        writer = _Writer(recorder)
        writer.read(taken)
        results = [[writer.operand(id) for id in of] for of in ids]
        self.leaves = [_leaf(x, pairs) for x, pairs in zip(leaves, results, strict=True)]
        self.arguments = [key for key in writer.arguments if isinstance(key, tuple)]
        self.constants = list(writer.constants.values())
        self.inputs = recorder.inputs
        column = {key: at for at, key in enumerate([*self.arguments, *self.constants, INPUT])}
        self._columns = [column[key] for key in writer.arguments]
        self.block = writer.block(
            chain.from_iterable(results), [(-1, at) for at in self._columns], recorder.drawn, taken.lines
        )
        self.form = form
        is_plain = not (self.inputs or recorder.drawn or self.constants or self.arguments)
        leaf: Any = self.leaves[0] if form.kind is None else None
        self.single = (leaf.number, leaf.spec) if is_plain and isinstance(leaf, Leaf) else None

    @property
    def bytes(self) -> int:
        """That it takes, about."""
        return OVERHEAD + sum(map(len, self.block[:5])) + sum(x.nbytes + 100 for x in self.inputs)

    def is_like(self, other: Recording) -> bool:
        """Whether both record the same."""
        return (
            self.block[:6] == other.block[:6]
            and self.arguments == other.arguments
            and exact(self.form) == exact(other.form)  # with the numbers and texts that are returned
            and [x.spec for x in self.leaves] == [x.spec for x in other.leaves]
            and [x.tobytes() for x in self.inputs] == [x.tobytes() for x in other.inputs]
        )

    def append(self, graph: Columns, arguments: list[Expression]) -> Any:
        """Append the nodes to a graph, and return what the function did.

        Args:
            arguments: expressions of this graph.
        """
        if self.single is not None:
            id_, spec = self.single
            return graph.expression_class(graph, graph.place((self.block,)) + id_, spec)
        columns = [_seen(arguments[at], view) for at, view in self.arguments]  # which may record copies
        columns += [find(graph) for find in self.constants]
        columns.append(len(graph.inputs))
        graph.inputs.extend(self.inputs)
        bases = [0, graph.place((self.block,), columns, self.block.n_draws), 0, *[columns[at] for at in self._columns]]
        return self.form.build(map(partial(_leaf_in, graph, bases), self.leaves))


def _leaf(x: Expression, pairs: list[Pair]) -> Leaf | Leaves:
    """What is returned, by what is added to each id."""
    if not isinstance(x, ExpressionArray):
        return Leaf(*pairs[0], x.spec)
    numbers, bases = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    return Leaves(numbers, bases, x.spec)


def _leaf_in(graph: Columns, bases: list[int], leaf: Leaf | Leaves) -> Expression:
    """What is returned in a graph."""
    if isinstance(leaf, Leaf):
        return graph.expression_class(graph, leaf.number + bases[leaf.base], leaf.spec)
    ids = leaf.numbers + np.array(bases, np.int64)[leaf.bases]
    found: Expression = array_graph(graph, len(ids)).leaf(ids, leaf.spec)
    return found


def _seen(x: Expression, view: int) -> int:
    """The id of an argument seen through a view."""
    if not view or x.id <= NODE_MASK:
        return x.id + (view << NODE_BITS)
    steps: Any = VIEWS[view]
    for op, attributes in steps.steps:
        x = look(x, op, attributes)
    return x.id


def _finder(key: Any) -> Callable[[Columns], int]:
    """What finds a constant in a graph, by the key under which one has it."""
    if isinstance(key, tuple) and isinstance(key[0], Parameter):
        spec, held = key[0].spec, key[2]
        return lambda graph: node_of_parameter(graph, spec, held).id
    if isinstance(key, tuple) and isinstance(key[0], Op):

        def find(graph: Columns) -> int:
            found = graph.constants.get(key)
            return constant_node(graph, *key).id if found is None else found[0]

        return find
    value = key if isinstance(key, float) else struct.unpack("<d", key[1])[0]
    return lambda graph: number(graph, value).id


class _Writer(BlockWriter):
    """Numbers what was recorded, without arguments and constants.

    Attributes:
        constants: by node, what finds each in a graph.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._given = {id: at for at, id in enumerate(recorder.arguments)}
        self.constants = {id: _finder(key) for key, (id, _) in recorder.constants.items()}
        super().__init__(self._given.keys() | self.constants.keys())

    def read(self, taken: Recorded) -> None:
        """Add all nodes but these."""
        columns = (x.tolist() for x in taken[:3])
        sources = self._sources
        for node, (type, read, given) in enumerate(nodes_of(*columns)):
            if node not in sources:
                base = INPUT if given and type.op is INPUT else NOTHING
                self.add(node, type, read, [(x - DRAWN, DRAW) if x >= DRAWN else (x, base) for x in given])

    def elsewhere(self, id: int) -> tuple[int, Any]:
        """An argument and its view, or what finds a constant."""
        node = id & NODE_MASK
        if node in self._given:
            return 0, (self._given[node], id >> NODE_BITS)
        return id - node, self.constants[node]
