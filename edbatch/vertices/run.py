"""One call of a vertex function: what each kind of vertex records, and all their nodes written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.context_stack import on_exit
from edbatch.errors import EdBatchError
from edbatch.graph.block import Block, Instances
from edbatch.graph.cell.trace import Constant, traced
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.vertices.automaton import Automaton, Classes
from edbatch.vertices.column import seen_alike
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.kept import Stores, VertexState
from edbatch.vertices.recording import VertexRecording, recording_of
from edbatch.vertices.vertex import Form, Vertex
from edbatch.vertices.vertex_graph import Input, VertexGraph


class _NotKept(Exception):
    """A function's recording is right for one call only."""


class Run(NamedTuple):
    """Records all vertices of one call; `inputs`: by kind, what they pull."""

    functions: tuple[Callable[..., Any], ...]
    names: list[str]
    graph: InputGraph
    base: Columns
    inputs: list[Any]

    @property
    def ranks(self) -> np.ndarray:
        """Per vertex how many of its kind come before it."""
        return self.graph._ranked(len(self.functions))[1]

    def record(self, stores: Stores) -> tuple[list[VertexRecording], np.ndarray, np.ndarray]:
        """What vertices take, per vertex which of these, and the ids [vertex, result] in the base."""
        states = stores.of(self.functions, self.base, self.inputs)
        state = None if states is None else states.find(self.functions, self.names)
        found = None
        if states is not None and state is not None:
            try:
                found = self._classes(state)
            except BaseException as error:
                states.forget(state)
                if not isinstance(error, _NotKept):
                    raise
        if found is None:
            found = self._classes(None)
        return found.recordings, found.of_vertices, self._written(found)

    def _classes(self, state: VertexState | None) -> Classes:
        """Classify vertices, and record what is not kept in a state; `_NotKept` if that is right of these alone."""
        start, starts = seen_alike(self.graph._kinds, self.ranks, self.inputs)
        if state is not None and len(starts) > len(self.inputs):  # of one kind, some are seen through other views
            raise _NotKept
        automaton = Automaton(len(starts)) if state is None else state.automaton

        def record(vertex: int, at: int, forms: list[Form]) -> VertexRecording:
            graph, made = self._recorded(vertex, *starts[at], forms)
            if state is not None:
                again = self._recorded(vertex, *starts[at], forms)[1]
                if not graph.is_kept or not made.is_like(again):  # random numbers, say
                    raise _NotKept
                state.guards |= graph.held
            return made

        found = automaton.classify(self.graph, start, record)
        if state is not None:
            counts = self.graph._ranked(len(self.functions))[0]
            if any(int(counts[one.kind]) in one.rows for one in found.recordings):
                raise _NotKept
            if self.base.keeps:
                state.note(self.base)
        return found

    def _recorded(self, number: int, kind: int, inputs: Any, forms: list[Form]) -> tuple[VertexGraph, VertexRecording]:
        """What vertices like this one record."""
        graph = VertexGraph(self.base, self.names[kind], int(self.graph._ranked(len(self.functions))[0][kind]))
        vertex = Vertex(graph, kind, forms, inputs)
        try:
            with on_exit(graph.close):
                returned = traced(graph, lambda: self.functions[kind](vertex))
                if returned is not None:
                    raise EdBatchError(f"it returns {type(returned).__name__}: expected v.scatter(...) or v.push(...)")
                vertex._check_gathered()
                return graph, recording_of(graph, vertex)
        except EdBatchError as error:
            of_kind = f" of kind {kind}" if len(self.functions) > 1 else ""
            raise EdBatchError(f"{self.names[kind]}, vertex {number}{of_kind}: {error}") from error

    def _written(self, classes: Classes) -> np.ndarray:
        """The ids of all results, when the nodes of all vertices have been recorded in the base."""
        recordings, of_vertices, counts = classes
        columns: list[Any] = []
        blocks: list[Block] = []
        leaves_of = [flatten(given)[0] for given in self.inputs]
        for at, one in enumerate(recordings):
            blocks.append(one.placed_from(len(columns)))
            constants = [make(self.base, *of).id for make, *of in one.constants]
            for of in one.arguments:
                if isinstance(of, Input):
                    given = leaves_of[one.kind][of.number]
                    columns.append(self._used(one, of_vertices, at, of, given) if of.size else given.values)
                elif isinstance(of, Constant):
                    columns.append(constants[of.number])
        draws = sum([count * block.n_draws for count, block in zip(counts, blocks, strict=True)])
        width = max([len(block.results) // 16 for block in blocks], default=0)
        results = np.empty((len(of_vertices), width), np.int64)
        order, offsets, children = self.graph._structure
        in_order = order if len(order) else None
        instances = Instances(counts, of_vertices, self.ranks, in_order, offsets, children, results)
        self.base.place(tuple(blocks), columns, draws, instances)
        return results

    def _used(
        self, recording: VertexRecording, of_vertices: np.ndarray, at: int, index: Input, given: Any
    ) -> np.ndarray:
        """The integers that vertices pull, none below 0; an error names the vertex of one out of range."""
        values, size = given.values, index.size
        if given.largest < size:  # nor is any negative
            return values
        (vertices,) = (of_vertices == at).nonzero()
        found = values[self.ranks[vertices]]
        wrong = (found < (0 if index.is_label else -size)) | (found >= size)
        if wrong.any():
            at = int(wrong.argmax())
            what = f"no label, expected one in [0, {size})" if index.is_label else f"out of range for {size} entries"
            name = self.names[recording.kind]
            raise EdBatchError(f"{name}, vertex {vertices[at]}: {index.place}: {found[at]} is {what}")
        return np.where(values < 0, values + size, values)
