"""One call of a vertex function: what each kind of vertex records, and all their nodes written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.base import blocks as opened
from edbatch.base.later import Later
from edbatch.errors import EdBatchError
from edbatch.graph.block import Block, Instances, Pair, packed
from edbatch.graph.columns import Columns
from edbatch.graph.integers import Integers
from edbatch.graph.opened import graphs
from edbatch.vertices.column import Column, seen_alike
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.recording import Recording, recording_of
from edbatch.vertices.vertex import Form, Vertex
from edbatch.vertices.vertex_graph import Use, VertexGraph

loops: Any = Later("edbatch.vertices.loops")


class Run:
    """Vertices fall into classes of one kind, and children of one form each: of a class, the function is called once.

    These are the states of an automaton: a vertex begins in that of its kind, and goes on with the form of each child.
    What is scattered has one form if its shapes are the same; only where a function looks at parts of what it gathered,
    and that may be a part of something else, are the views that it is seen through told apart as well.

    Attributes:
        recordings: what has been recorded so far.
    """

    def __init__(
        self, functions: tuple[Callable[..., Any], ...], names: list[str], graph: InputGraph, base: Columns
    ) -> None:
        self.functions = functions
        self.names = names
        self.graph = graph
        self.base = base
        self._n_of_kind, self._ranks = graph._ranked(len(functions))
        self.recordings: list[Recording] = []
        self._views = False
        self._starts: list[tuple[int, Any]] = []  # kinds and inputs
        self._forms: dict[Form, int] = {}
        self._form_of: list[int] = []  # by recording
        self._known: dict[tuple[int, ...], int] = {}  # recordings by start and forms of children

    def record(self, inputs: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Record all vertices; `inputs`: by kind, what they pull.

        Returns:
            Ids [vertex, result] in the base, and per vertex its recording.
        """
        entered: list[opened.Block[Columns]] = []
        self._opened = graphs.enter(self.base, entered)
        try:
            found = self._classes(inputs)
        finally:
            graphs.leave(self._opened, entered)
        return self._written(*found), found[0]

    def _classes(self, inputs: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Per vertex its recording, and per recording the number of vertices."""
        kinds = self.graph._kinds
        self._starts = list(enumerate(inputs))
        found = self._classified(kinds)
        if any(one.looks for one in self.recordings) and any(one.is_viewed for one in self.recordings):
            self._views, self._known, self._form_of, self.recordings = True, {}, [], []
            start, self._starts = seen_alike(kinds, self._ranks, inputs)
            found = self._classified(start)
        return found

    def _classified(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, given per vertex its first state."""
        next_state: dict[tuple[int, int], int] = {}  # by state and form
        of_state = [-1] * len(self._starts)
        recordings = np.empty(len(self.graph), np.int32)
        step = 0
        while True:
            forms = np.array(self._form_of, np.int32)
            table = np.full((len(of_state), max(1, len(self._forms))), -1, np.int32)
            for key, state in next_state.items():
                table[key] = state
            of_states = np.array(of_state, np.int32)
            step = loops.classify(step, self.graph._structure, start, table, of_states, forms, recordings)
            if step == len(recordings):
                return recordings, np.bincount(recordings, minlength=len(self.recordings))
            vertex = int(self.graph._order[step]) if len(self.graph._order) else step
            state = int(start[vertex])
            for child in self.graph._children_of(vertex):
                key = state, self._form_of[recordings[child]]
                if key not in next_state:
                    next_state[key] = len(of_state)
                    of_state.append(-1)
                state = next_state[key]
            of_state[state] = self._learn(vertex, int(start[vertex]), recordings)

    def _learn(self, vertex: int, start: int, recordings: np.ndarray) -> int:
        """The recording of a vertex, given those of its children."""
        children = [int(recordings[child]) for child in self.graph._children_of(vertex)]
        key = start, *(self._form_of[child] for child in children)
        if key not in self._known:
            made = self._recorded(vertex, *self._starts[start], [self.recordings[child].form for child in children])
            self._known[key] = len(self.recordings)
            self.recordings.append(made)
            self._form_of.append(self._forms.setdefault(made.form, len(self._forms)))
        return self._known[key]

    def _recorded(self, number: int, kind: int, inputs: Any, forms: list[Form]) -> Recording:
        """What vertices like this one record."""
        graph = VertexGraph(self.base, self.names[kind], int(self._n_of_kind[kind]))
        vertex = Vertex(graph, kind, forms, inputs)
        function = self.functions[kind]
        try:
            self._opened.value = graph
            returned = function(vertex)
            if returned is not None:
                raise EdBatchError(f"it returns {type(returned).__name__}: expected v.scatter(...) or v.push(...)")
            vertex._check_gathered()
            return recording_of(graph, vertex, self._views)
        except EdBatchError as error:
            of_kind = f" of kind {kind}" if len(self.functions) > 1 else ""
            raise EdBatchError(f"{self.names[kind]}, vertex {number}{of_kind}: {error}") from error
        finally:
            self._opened.value = self.base
            graph.close()

    def _written(self, recordings: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The ids of all results, when the nodes of all vertices have been recorded in the base."""
        columns: list[np.ndarray] = []
        blocks: list[Block] = []
        for at, one in enumerate(self.recordings):
            pairs: list[Pair] = []
            for of in one.arguments:
                if of.__class__ is tuple:
                    pairs.append(of)
                else:
                    pairs.append((-1, len(columns)))
                    columns.append(self._column(at, recordings, of))
            blocks.append(one.block._replace(arguments=packed(pairs)))
        times = counts.tolist()
        draws = sum([count * block.n_draws for count, block in zip(times, blocks, strict=True)])
        width = max([len(block.results) // 16 for block in blocks], default=0)
        results = np.empty((len(recordings), width), np.int64)
        order, offsets, children = self.graph._structure
        instances = Instances(times, recordings, self._ranks, order if len(order) else None, offsets, children, results)
        self.base.place(tuple(blocks), columns, draws, instances)
        return results

    def _column(self, recording: int, recordings: np.ndarray, of: Column | Integers | Use) -> np.ndarray:
        """What the vertices of a recording pull, by their ranks; none counts from the end.

        Raises:
            EdBatchError: an integer is out of range; the vertex is named.
        """
        if not isinstance(of, Use):
            return of.values
        values, size = of.column.values, of.size
        if of.column.largest < size:  # nor is any negative
            return values
        (vertices,) = (recordings == recording).nonzero()
        found = values[self._ranks[vertices]]
        wrong = (found < (0 if of.is_label else -size)) | (found >= size)
        if wrong.any():
            at = int(wrong.argmax())
            what = f"no label, expected one in [0, {size})" if of.is_label else f"out of range for {size} entries"
            name = self.names[self.recordings[recording].kind]
            raise EdBatchError(f"{name}, vertex {vertices[at]}: {of.place}: {found[at]} is {what}")
        return np.where(values < 0, values + size, values)
