"""Which recording each vertex takes: vertices fall into classes, and of a class the function is called once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.base.locking import lock, signals_deferred
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.recording import VertexRecording
from edbatch.vertices.vertex import Form

loops: Any = LazyModule("edbatch.vertices.loops")


class Classes(NamedTuple):
    """Vertices by what they take: recordings, per vertex which (int32), per recording how many take it."""

    recordings: list[VertexRecording]
    of_vertices: np.ndarray
    counts: list[int]

    def used(self) -> Classes:
        """The same without recordings that no vertex takes."""
        numbers = np.flatnonzero(self.counts)
        if len(numbers) == len(self.counts):
            return self
        renumbered = np.zeros(len(self.counts), np.int32)
        renumbered[numbers] = np.arange(len(numbers))
        of_all = [(self.recordings[at], self.counts[at]) for at in numbers]
        return Classes([one for one, _ in of_all], renumbered[self.of_vertices], [count for _, count in of_all])


class Automaton:
    """A vertex begins in the state of its kind, and goes on with the form of what each child scatters."""

    def __init__(self, starts: int) -> None:
        self.recordings: list[VertexRecording] = []
        self._forms: dict[Form, int] = {}
        self._next_state: dict[tuple[int, int], int] = {}  # by state and form
        self._recording_of = [-1] * starts  # by state
        self._tables = self._as_arrays()

    def classify(self, graph: InputGraph, start: np.ndarray, record: Callable[..., VertexRecording]) -> Classes:
        """Find the recording of each vertex; `start`: per vertex its first state; `record`: of what is new."""
        found = np.empty(len(graph), np.int32)
        counts = np.zeros(len(self.recordings), np.int64)
        step = 0
        while True:
            tables = self._tables
            step = loops.classify(step, graph._structure, start, tables, found, counts)
            if step == len(found):
                return Classes(self.recordings[: len(counts)], found, counts.tolist()).used()
            vertex = int(graph._order[step]) if len(graph._order) else step
            children = [self.recordings[found[child]].form for child in graph._children_of(vertex)]
            self._learn(record(vertex, int(start[vertex]), children), int(start[vertex]), children)
            counts = np.concatenate([counts, np.zeros(len(self.recordings) - len(counts), np.int64)])

    def _learn(self, made: VertexRecording, state: int, children: list[Form]) -> None:
        """Have a start and the forms of children lead to a recording, unless another thread was faster."""
        with lock, signals_deferred():
            for child in children:
                state = self._next_state.setdefault((state, self._forms[child]), len(self._recording_of))
                if state == len(self._recording_of):
                    self._recording_of.append(-1)
            if self._recording_of[state] < 0:
                self._recording_of[state] = len(self.recordings)
                self.recordings.append(made)
                self._forms.setdefault(made.form, len(self._forms))
            self._tables = self._as_arrays()

    def _as_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per state and form the next state, per state the recording, and per recording its form; -1: not known yet."""
        next_state = np.full((len(self._recording_of), max(1, len(self._forms))), -1, np.int32)
        for key, state in self._next_state.items():
            next_state[key] = state
        forms = [self._forms[one.form] for one in self.recordings]
        return next_state, np.array(self._recording_of, np.int32), np.array(forms, np.int32)
