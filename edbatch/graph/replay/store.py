"""The recordings of one owner: by what must be as it was for them to be right, and no more than so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from edbatch.base.locking import lock
from edbatch.graph.columns import Columns
from edbatch.graph.guard import Held, all_hold
from edbatch.graph.replay.recording import Recording
from edbatch.graph.replay.sample import Part

MOST_STATES = 16  # of what recordings depend on
MOST_GRAPHS = 16  # whose state is remembered


class Entry:
    """A recording, and the sample it is of.

    Args:
        recording: the nodes.
        sample: held, so that nothing else gets its `id`.
        parts: what can change of it.
        size: bytes that both take.

    Attributes:
        keys: by what it holds, and by which object it is.
    """

    __slots__ = ("keys", "parts", "plain", "recording", "sample", "size", "used")

    def __init__(self, recording: Recording, sample: Any, parts: tuple[Part, ...], size: int) -> None:
        self.recording = recording
        self.sample = sample
        self.parts = parts
        self.keys: tuple[Any, Any] = None, None
        self.size = size
        self.used = True
        #: Of a recording that is appended without looking for anything: its block, and what is returned.
        self.plain = None if recording.single is None else ((recording.block,), *recording.single)


class State:
    """What recordings depend on besides their samples, and those that are right while it holds."""

    def __init__(self) -> None:
        self.guards: dict[Any, Held] = {}
        self.is_new = True  # nothing has been recorded
        self.classes: frozenset[type] = frozenset()  # of samples' objects, whose attributes and methods are guarded
        self.by_content: dict[Any, Entry] = {}
        self.by_object: dict[Any, Entry] = {}

    def holds(self) -> bool:
        """Whether nothing has changed."""
        return all_hold(self.guards.values())

    def note(self, graph: Columns) -> None:
        """Have a graph note it: what is known by its object is appended without a look at anything else."""
        for guard, held, static in self.guards.values():
            owner = held()
            if owner is not None:
                graph.note(guard, owner, static, frozenset())


class Store:
    """All recordings of an owner.

    Args:
        owner: gives it as long as it is there.
        most: bytes.

    Attributes:
        live: number of the graph that was recorded in last, and what is known by its object there.
    """

    def __init__(self, owner: Callable[[], Any], most: int) -> None:
        self.owner = owner
        self.bytes = 0
        self.live: tuple[int, dict[Any, Entry]] = -1, {}
        self._graphs: dict[int, State] = {}
        self._most = most
        self._states: dict[Any, list[State]] = {}
        self._entries: OrderedDict[int, tuple[State, Entry]] = OrderedDict()

    def state(self, graph: Columns) -> State:
        """What holds now, looked for once for each graph."""
        found = self._graphs.get(graph.serial)
        if found is not None:
            return found
        options = graph.options
        of_graph = graph.dtype, graph.expression_class, graph.inlines
        key = *of_graph, options.variant, options.training, options.trace_lines
        with lock:
            states = self._states.setdefault(key, [])
            found = next((one for one in states if one.holds()), None)
            if found is None:
                found = State()
            else:
                states.remove(found)
            states.append(found)
            for old in states[:-MOST_STATES]:
                states.remove(old)
                for entry in list(old.by_content.values()):
                    self.forget(old, entry)
            if len(self._graphs) >= MOST_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            self._graphs[graph.serial] = found
        found.note(graph)
        return found

    def keep(self, state: State, entry: Entry) -> None:
        """Keep a recording, and forget those that were not used for longest if they are too many."""
        content, same = entry.keys
        with lock:
            before = state.by_content.get(content)
            if before is not None:
                self.forget(state, before)
            state.by_content[content] = entry
            if same is not None:
                state.by_object[same] = entry
            self._entries[id(entry)] = state, entry
            self.bytes += entry.size
            self._make_room()

    def _make_room(self) -> None:
        while self.bytes > self._most and self._entries:
            _, (of, old) = next(iter(self._entries.items()))
            if old.used:
                old.used = False
                self._entries.move_to_end(id(old))
            else:
                self.forget(of, old)

    def renew(self, state: State, entry: Entry, sample: Any, parts: tuple[Part, ...], same: Any) -> None:
        """Have another object that holds the same found at once."""
        with lock:
            if state.by_object.get(entry.keys[1]) is entry:
                del state.by_object[entry.keys[1]]
            entry.sample, entry.parts, entry.keys = sample, parts, (entry.keys[0], same)
            state.by_object[same] = entry

    def forget(self, state: State, entry: Entry) -> None:
        """Keep it no more."""
        if self._entries.pop(id(entry), None) is None:
            return
        content, same = entry.keys
        state.by_content.pop(content, None)
        if state.by_object.get(same) is entry:
            del state.by_object[same]
        self.bytes -= entry.size
