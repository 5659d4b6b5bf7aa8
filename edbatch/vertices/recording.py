"""A vertex function's nodes, as a block that is put for every vertex."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.block import Block, BlockWriter, Pair, packed
from edbatch.graph.cell.trace import ARGUMENT, Constant
from edbatch.graph.columns import nodes_of
from edbatch.graph.integers import Integers
from edbatch.graph.lines import LinedTypes
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind
from edbatch.graph.record import array_input
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.vertices.vertex import Form, Vertex
from edbatch.vertices.vertex_graph import Input, Source, VertexGraph


class VertexRecording(NamedTuple):
    """What every vertex of one kind records that has as many children, of the same forms.

    Attributes:
        block: of the nodes, but for its arguments; its results are what is scattered, then what is pushed.
        arguments: a child and which of its results, an input, an index, or a constant.
        constants: what makes each in a graph, and of what.
        given: "scatter" and "push", what it gives, if it does.
        rows: of arrays that mean something else for as many vertices.
        placed: see `placed_from`.
    """

    kind: int
    block: Block
    arguments: list[Any]
    constants: list[Any]
    given: dict[str, Form]
    rows: frozenset[int]
    placed: dict[int, Block]

    @property
    def form(self) -> Form:
        """What it scatters."""
        return self.given.get("scatter", Form(None))

    def placed_from(self, column: int) -> Block:
        """The block, whose arguments but for results of children are the columns from this one on."""
        found = self.placed.get(column)
        if found is None:
            numbers = count(column)
            pairs = [of if of.__class__ is tuple else (-1, next(numbers)) for of in self.arguments]
            found = self.placed[column] = self.block._replace(arguments=packed(pairs))
        return found

    def is_like(self, other: VertexRecording) -> bool:
        """Whether both record the same."""
        return self._without_arrays() == other._without_arrays()

    def _without_arrays(self) -> VertexRecording:
        bits = [[(x.shape, x.tobytes()) if isinstance(x, np.ndarray) else x for x in one] for one in self.constants]
        return self._replace(constants=bits, placed={})


class _Writer(BlockWriter):
    """Numbers what was recorded, in which placeholders are from elsewhere."""

    def __init__(self, graph: VertexGraph) -> None:
        super().__init__(graph.sources)
        self.graph = graph
        graph.flush_arrays()
        nodes = list(nodes_of(graph.types, graph.operands, graph.integers))
        for node, (type, _, given) in enumerate(nodes):  # inputs have one value for all vertices
            if type.op.kind is Kind.SOURCE and type.op is not ARGUMENT:
                graph.sources[node] = Source(Constant(len(graph.made)))
                graph.made.append((array_input, graph.inputs[given[0]]))
        self.read(nodes)

    def integer(self, type: NodeType, x: Any) -> tuple[int, Any]:
        """Of an input, the input."""
        if isinstance(x, Integers):
            raise EdBatchError(f"{type}: an array of integers; of each vertex it is one that it pulls")
        return (0, x) if isinstance(x, Input) else super().integer(type, int(x))

    def elsewhere(self, id: int) -> tuple[int, Any]:
        """What a placeholder stands for."""
        node = id & NODE_MASK
        source = self.graph.sources[node]
        return source.id + id - node - (source.view << NODE_BITS), source.of


def recording_of(graph: VertexGraph, vertex: Vertex) -> VertexRecording:
    """What a function has recorded."""
    writer = _Writer(graph)
    results: list[Pair] = []
    given: dict[str, Form] = {}
    for name, (found, tree) in sorted(vertex._results.items(), reverse=True):  # what is scattered first
        given[name] = Form(tree, tuple(x.spec for x in found), tuple(x.id >> NODE_BITS for x in found), len(results))
        results += [writer.operand(x.id) for x in found]
    block = writer.block(results, (), graph.drawn, graph.types.lines if isinstance(graph.types, LinedTypes) else [])
    of_graph = writer.arguments, graph.made, given, frozenset(graph.refusable)
    return VertexRecording(vertex.kind, block, *of_graph, {})
