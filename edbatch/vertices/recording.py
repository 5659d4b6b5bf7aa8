"""A vertex function's nodes, as the rows that are written out for every vertex."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.cell.structure import Structure
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.columns import nodes_of
from edbatch.graph.integers import Integers
from edbatch.graph.lines import LinedTypes
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind
from edbatch.graph.sources import INPUT
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.vertices.vertex import Form, Vertex
from edbatch.vertices.vertex_graph import DRAWN, FIXED, OWN, PULLED, Drawn, Pulled, Source, Use, VertexGraph

# What an integer is, a child or a column (or a use of one), which of its results, and what is added.
Row = tuple[int, Any, int, int]


class Given(NamedTuple):
    """What a vertex gives.

    Attributes:
        begin: the first of its results among the rows.
        structure, specs: how they are nested, and their specs.
    """

    begin: int
    structure: Structure
    specs: tuple[Spec, ...]


class Recording(NamedTuple):
    """What every vertex of one kind records that has as many children, of the same forms.

    Attributes:
        kind, form: of the vertices.
        types: of the nodes.
        lines: where each was recorded, if that is noted.
        operands, integers: rows of those of the nodes.
        results: rows of what is scattered, then of what is pushed.
        given: "scatter" and "push", what it gives, if it does.
        drawn: numbers that are drawn.
        uses: of integers.
        looks: whether it looks at something through a view of its own that may be seen through another.
        is_viewed: whether something that it scatters, or looks at, is, or may be, seen through a view already.
    """

    kind: int
    form: Form
    types: list[int]
    lines: list[str]
    operands: list[Row]
    integers: list[Row]
    results: list[Row]
    given: dict[str, Given]
    drawn: int
    uses: list[Use]
    looks: bool
    is_viewed: bool


class _Reader:
    """Goes through what was recorded."""

    def __init__(self, graph: VertexGraph) -> None:
        self.graph = graph
        self.numbers: dict[int, int] = {}  # of the nodes that are written out
        self.looks = self.looks_at_input = False

    def read(self) -> tuple[list[int], list[str], list[Row], list[Row]]:
        """Types and lines of the nodes, and rows of their operands and integers."""
        graph = self.graph
        if graph.array_graphs:
            graph.flush_arrays()
        types: list[int] = []
        lines: list[str] = []
        operands: list[Row] = []
        integers: list[Row] = []
        noted = graph.types.lines if isinstance(graph.types, LinedTypes) else []
        for node, (type, read, given) in enumerate(nodes_of(graph.types, graph.operands, graph.integers)):
            if type.op is ARGUMENT:
                continue
            if type.op.kind is Kind.SOURCE:  # which has one value for all vertices
                if type.op is INPUT:
                    graph.base.inputs.append(graph.inputs[given[0]])
                    given = [len(graph.base.inputs) - 1]
                graph.sources[node] = Source(FIXED, id=graph.base.extend(type, 1, read, given))
                continue
            self.numbers[node] = len(types)
            types.append(type.id)
            lines += noted[node : node + 1]
            if type.n_operands < 0:
                operands.append((FIXED, 0, 0, len(read)))
            operands += map(self.operand, read)
            integers += [_integer(type, x) for x in given]
        return types, lines, operands, integers

    def operand(self, id: int) -> Row:
        """Of an expression of the graph."""
        node = id & NODE_MASK
        source = self.graph.sources.get(node)
        if source is None:
            return OWN, 0, 0, id - node + self.numbers[node]
        more = id - node - (source.view << NODE_BITS)
        if more and not source.is_seen:
            self.looks = True
            self.looks_at_input = self.looks_at_input or source.what == PULLED
        return source.what, source.a, source.b, source.id + more


def _integer(type: NodeType, x: Any) -> Row:
    if x.__class__ is int:
        return FIXED, 0, 0, x
    if isinstance(x, Drawn):
        return DRAWN, 0, 0, x.number
    if isinstance(x, Use):
        return PULLED, x, 0, 0
    if isinstance(x, Pulled):
        return PULLED, x.column, 0, 0
    if isinstance(x, Integers):
        raise EdBatchError(f"{type}: an array of integers; of each vertex it is one that it pulls")
    return FIXED, 0, 0, int(x)


def recording_of(graph: VertexGraph, vertex: Vertex, views: bool) -> Recording:
    """What a function has recorded; `views`: whether what is scattered through other views has other forms."""
    reader = _Reader(graph)
    nodes = reader.read()
    results: list[Row] = []
    given: dict[str, Given] = {}
    is_viewed = reader.looks_at_input
    for name in ("scatter", "push"):
        if name in vertex._results:
            found, structure = vertex._results[name]
            given[name] = Given(len(results), structure, tuple(x.spec for x in found))
            results += [reader.operand(x.id) for x in found]
            sources = [graph.sources.get(x.id & NODE_MASK) for x in found]
            open = any(x is not None and x.what == PULLED and not x.is_seen for x in sources)
            is_viewed = is_viewed or (name == "scatter" and (open or any(x.id >> NODE_BITS for x in found)))
    return Recording(
        vertex.kind, vertex._form(views), *nodes, results, given, graph.drawn, graph.uses, reader.looks, is_viewed,
    )  # fmt: skip


def tabled(recordings: list[Recording], column_begin: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tables of all recordings that `write_loops.write` reads.

    Args:
        column_begin: of a column, or of a use of one, where it begins among the inputs.
    """
    types: list[int] = []
    rows: list[Row] = []
    begins: list[int] = []
    for one in recordings:
        of_integers = len(rows) + len(one.operands)
        begins += len(types), len(rows), of_integers, of_integers + len(one.integers), one.drawn
        types += one.types
        rows += one.operands
        rows += one.integers
        rows += one.results
    begins += len(types), len(rows), 0, 0, 0
    written: list[int] = []
    for what, a, b, id in rows:
        written += what, column_begin(a) if what == PULLED else a, b, id
    table = np.array(written, np.int64).reshape(-1, 4)
    return np.array(begins, np.int64).reshape(-1, 5), np.array(types, np.int32), table
