"""What vertices have given: arrays of expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import array_graph
from edbatch.graph.columns import Columns
from edbatch.graph.spec import spec_of
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.recording import VertexRecording
from edbatch.vertices.vertex import Form


class Vertices:
    """The results of a vertex function, of all vertices or of those of one kind (see `edbatch.vertex`).

    Arrays have an entry for each vertex, in the order of their numbers; of several results, they are nested as the
    function gave them.
    """

    def __init__(
        self, base: Columns, graph: InputGraph, recordings: np.ndarray, made: list[VertexRecording],
        results: np.ndarray, kind: int | None = None,
    ) -> None:  # fmt: skip
        self._base = base
        self._graph = graph
        self._recordings = recordings
        self._made = made
        self._results = results
        self._kind = kind
        self._chosen = None if kind is None else np.flatnonzero(graph._kinds == kind)
        # Whoever looks for expressions that can be reached finds one.
        self._held = array_graph(base, 0).leaf(recordings[:0], spec_of((), base.dtype))

    def __len__(self) -> int:
        """The number of vertices."""
        return len(self._graph) if self._chosen is None else len(self._chosen)

    def __repr__(self) -> str:
        return f"Vertices({len(self)})"

    def of(self, kind: int) -> Vertices:
        """The same of the vertices of one kind.

        Raises:
            EdBatchError: there is none.
        """
        found = Vertices(self._base, self._graph, self._recordings, self._made, self._results, kind)
        if not len(found):
            raise EdBatchError(f"Vertices.of({kind}): there is no vertex of that kind")
        return found

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the vertices."""
        return np.arange(len(self._graph)) if self._chosen is None else self._chosen.copy()

    @property
    def scattered(self) -> Any:
        """What each vertex scattered, as an `ExpressionArray`, or several, nested as the function gave them.

        Raises:
            EdBatchError: one scattered nothing, or they scattered results of several shapes; `of(kind)` are alike.
        """
        return self._array("scatter", self._common("scatter", self._mine()), self._chosen)

    @property
    def pushed(self) -> Any:
        """What vertices pushed; as `scattered`, but only of those that pushed something: `pushed_by` says which."""
        pushing = [one for one in self._mine() if "push" in self._made[one].given]
        given = self._common("push", pushing)
        return self._array("push", given, self._chosen if len(pushing) == len(self._mine()) else self.pushed_by)

    @property
    def pushed_by(self) -> np.ndarray:
        """The numbers of the vertices that pushed something."""
        pushes = np.array(["push" in one.given for one in self._made], np.bool_)
        numbers = self.numbers
        return numbers[pushes[self._recordings[numbers]]]

    def _mine(self) -> list[int]:
        """The recordings of these vertices."""
        return [at for at, one in enumerate(self._made) if self._kind in (None, one.kind)]

    def _common(self, name: str, recordings: list[int]) -> list[Form]:
        """What these give, per recording, which is of one shape."""
        found = [self._made[at].given.get(name) for at in recordings]
        if not found:
            raise EdBatchError(f"no vertex has called {name}")
        first = found[0]
        given = []
        for at, one in zip(recordings, found, strict=True):
            if one is None or first is None:
                vertex = int((self._recordings == (at if one is None else recordings[0])).argmax())
                raise EdBatchError(f"vertex {vertex} has not called {name}; those of one kind are Vertices.of(kind)")
            if (one.tree, one.specs) != (first.tree, first.specs):
                both = [int((self._recordings == which).argmax()) for which in (recordings[0], at)]
                raise EdBatchError(
                    f"vertices {both[0]} and {both[1]} {name} results of several shapes, {list(first.specs)} and "
                    f"{list(one.specs)}; those of one kind are Vertices.of(kind)"
                )
            given.append(one)
        return given

    def _array(self, name: str, given: list[Form], numbers: np.ndarray | None) -> Any:
        first: Any = given[0]
        graph = array_graph(self._base, len(self._graph) if numbers is None else len(numbers))
        rows = slice(None) if numbers is None else numbers
        at: Any = first.begin
        if len({one.begin for one in given}) > 1:
            begin = np.array([one.given[name].begin if name in one.given else 0 for one in self._made])
            rows = self.numbers if numbers is None else numbers
            at = begin[self._recordings[rows]]
        columns = [np.ascontiguousarray(self._results[rows, at + column]) for column in range(len(first.specs))]
        leaves = [graph.leaf(ids, spec) for ids, spec in zip(columns, first.specs, strict=True)]
        return first.tree.build(leaves)
