"""Which recording each vertex takes: vertices fall into classes, and of a class the function is called once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.base.locking import lock, signals_deferred
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.recording import Recording
from edbatch.vertices.vertex import Form

loops: Any = LazyModule("edbatch.vertices.loops")


class Tables(NamedTuple):
    """The automaton's tables, as `loops.classify` reads them.

    Attributes:
        next_state: [state, form].
        recording: per state.
        form: per recording.
    """

    next_state: np.ndarray
    recording: np.ndarray
    form: np.ndarray


class Classes(NamedTuple):
    """Vertices by what they take.

    Attributes:
        recordings: those that some take.
        of_vertices: per vertex, which of them (int32).
        counts: per recording, how many take it.
    """

    recordings: list[Recording]
    of_vertices: np.ndarray
    counts: list[int]

    @property
    def are_seen(self) -> bool:
        """Whether a function looks at parts of what may be a part of something else."""
        looks = is_viewed = False
        for one in self.recordings:
            looks, is_viewed = looks or one.looks, is_viewed or one.is_viewed
        return looks and is_viewed


def _used(recordings: list[Recording], of_vertices: np.ndarray, counts: list[int]) -> Classes:
    if 0 in counts:
        numbers = [at for at, count in enumerate(counts) if count]
        renumbered = np.zeros(len(counts), np.int32)
        renumbered[numbers] = np.arange(len(numbers))
        return Classes([recordings[at] for at in numbers], renumbered[of_vertices], [counts[at] for at in numbers])
    return Classes(recordings[: len(counts)], of_vertices, counts)


class Automaton:
    """A vertex begins in the state of its kind, and goes on with the form of what each child scatters.

    Args:
        starts: how many states vertices may begin in.

    Attributes:
        recordings: what has been recorded so far.
    """

    def __init__(self, starts: int) -> None:
        self.recordings: list[Recording] = []
        self._forms: dict[Form, int] = {}
        self._form_of: list[int] = []  # by recording
        self._next_state: dict[tuple[int, int], int] = {}  # by state and form
        self._recording_of = [-1] * starts  # by state
        self._known: dict[tuple[int, ...], int] = {}  # recordings by start and forms of children
        self._tables = self._as_arrays()

    def classify(self, graph: InputGraph, start: np.ndarray, record: Callable[..., Recording]) -> Classes:
        """Which recording each vertex takes.

        Args:
            start: per vertex the state to begin with.
            record: from a vertex, its start and the forms of its children to what vertices like it record.
        """
        found = np.empty(len(graph), np.int32)
        counts = np.zeros(len(self.recordings), np.int64)
        step = 0
        while True:
            tables = self._tables
            step = loops.classify(step, graph._structure, start, tables, found, counts)
            if step == len(found):
                return _used(self.recordings, found, counts.tolist())
            vertex = int(graph._order[step]) if len(graph._order) else step
            children = [int(tables.form[found[child]]) for child in graph._children_of(vertex)]
            key = int(start[vertex]), *children
            if key not in self._known:
                forms = list(self._forms)
                self._learn(key, record(vertex, key[0], [forms[child] for child in children]))
            with lock, signals_deferred():
                self._lead_to(key)
            counts = np.concatenate([counts, np.zeros(len(self.recordings) - len(counts), np.int64)])

    def _learn(self, key: tuple[int, ...], made: Recording) -> None:
        with lock, signals_deferred():  # another thread may have been faster
            if key not in self._known:
                self._known[key] = len(self.recordings)
                self.recordings.append(made)
                self._form_of.append(self._forms.setdefault(made.form, len(self._forms)))

    def _lead_to(self, key: tuple[int, ...]) -> None:
        """Have the states of a start and the forms of children lead to their recording."""
        state, *children = key
        for child in children:
            state = self._next_state.setdefault((state, child), len(self._recording_of))
            if state == len(self._recording_of):
                self._recording_of.append(-1)
        self._recording_of[state] = self._known[key]
        self._tables = self._as_arrays()

    def _as_arrays(self) -> Tables:
        next_state = np.full((len(self._recording_of), max(1, len(self._forms))), -1, np.int32)
        for key, state in self._next_state.items():
            next_state[key] = state
        return Tables(next_state, np.array(self._recording_of, np.int32), np.array(self._form_of, np.int32))
