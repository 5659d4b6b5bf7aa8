"""The recordings of one owner: by what must be as it was for them to be right, and no more than so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edbatch.base.locking import lock
from edbatch.graph.cell.trace import graph_kind
from edbatch.graph.columns import Columns
from edbatch.graph.guard import GuardedState, holding
from edbatch.graph.replay.recording import Recording
from edbatch.graph.replay.sample import Part

MOST_STATES = 16  # of what recordings depend on


@dataclass(slots=True, eq=False)
class KeptRecording:
    """A recording, and the sample it is of, which is held so that nothing else gets its `id`.

    Attributes:
        content, same: by which it is found: what the sample holds, and which object it is.
        bytes: that both take.
        used: whether it was, since somebody looked.
    """

    recording: Recording
    sample: Any
    parts: tuple[Part, ...]
    bytes: int
    content: Any
    same: Any
    used: bool = True


class State(GuardedState):
    """What recordings depend on (`classes`: of samples' objects), and those that are right while it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: frozenset[type] = frozenset()
        self.by_content: dict[Any, KeptRecording] = {}
        self.by_object: dict[Any, KeptRecording] = {}

    def find(self, one: KeptRecording, sample: Any, parts: tuple[Part, ...], same: Any) -> None:
        """Have a recording found by another object that holds the same."""
        with lock:
            if self.by_object.get(one.same) is one:
                del self.by_object[one.same]
            one.sample, one.parts, one.same = sample, parts, same
            self.by_object[same] = one


class Store:
    """All recordings of an owner; `live`: the serial of the last graph, and the state that holds there."""

    def __init__(self, owner: Callable[[], Any], most: int) -> None:
        self.owner = owner
        self.bytes = 0
        self.live = -1, State()
        self._most = most
        self._states: dict[Any, list[State]] = {}
        self._kept: OrderedDict[int, tuple[State, KeptRecording]] = OrderedDict()

    def state(self, graph: Columns) -> State:
        """What holds now, looked for once for each graph."""
        serial, live = self.live
        if serial == graph.serial:
            return live
        with lock:
            states = self._states.setdefault(graph_kind(graph), [])
            found = holding(states)
            if found is None:
                found = State()
                states.append(found)
            for old in states[:-MOST_STATES]:
                states.remove(old)
                for one in list(old.by_content.values()):
                    self._forget(old, one)
            self.live = graph.serial, found
        found.note(graph, frozenset())  # what is known by its object is appended without a look at anything else
        return found

    def keep(self, state: State, one: KeptRecording) -> None:
        """Keep a recording, and forget those that were not used for longest if they are too many."""
        with lock:
            before = state.by_content.get(one.content)
            if before is not None:
                self._forget(state, before)
            state.by_content[one.content] = one
            if one.same is not None:
                state.by_object[one.same] = one
            self._kept[id(one)] = state, one
            self.bytes += one.bytes
            while self.bytes > self._most and self._kept:
                of, old = next(iter(self._kept.values()))
                if old.used:
                    old.used = False
                    self._kept.move_to_end(id(old))
                else:
                    self._forget(of, old)

    def _forget(self, state: State, one: KeptRecording) -> None:
        if self._kept.pop(id(one), None) is None:
            return
        state.by_content.pop(one.content, None)
        if state.by_object.get(one.same) is one:
            del state.by_object[one.same]
        self.bytes -= one.bytes
