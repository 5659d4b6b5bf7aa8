"""What compiled code keeps, and grows, of one graph; the next graph of its types goes on with it."""

from __future__ import annotations

from edbatch.compiling.directory import Directory
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.backward.flow import Flow
from edbatch.runtime.nodes import Nodes

MOST_BYTES = 1 << 26  # of a store that is kept
MOST = 4  # stores that are kept for graphs of one table


class Store:
    """The records of a graph.

    Args:
        windows: layouts and windows, shared with other graphs.
        pool: where buffers come from and go to.

    Attributes:
        nodes: those that were taken over.
        plan: what has run.
        arenas: the values.
        memory: where they are, as compiled code was told last.
        flow, back: where gradients flow, and the plan of the way back.
    """

    __slots__ = ("arenas", "back", "flow", "memory", "nodes", "plan")

    def __init__(self, windows: Windows, pool: BufferPool) -> None:
        self.nodes = Nodes()
        self.plan = GrowingPlan()
        self.arenas = Arenas(windows, pool)
        self.memory: Directory[Memory] | None = None
        self.flow = Flow()
        self.back = GrowingPlan()

    def clear(self) -> None:
        """Have nothing left but room."""
        self.arenas.clear()
        self.nodes.clear()
        self.plan.clear()

    @property
    def bytes(self) -> int:
        """Of all records and values, with their room."""
        return self.nodes.bytes + self.plan.bytes + self.arenas.room + self.flow.bytes + self.back.bytes


class Stores:
    """Those that no graph has now.

    Args:
        windows, pool: see `Store`.
    """

    def __init__(self, windows: Windows, pool: BufferPool) -> None:
        self._made_of = windows, pool
        self._free: list[Store] = []

    def take(self) -> Store:
        """One without nodes."""
        try:
            return self._free.pop()
        except IndexError:
            return Store(*self._made_of)

    def give_back(self, store: Store) -> None:
        """Have it used again, unless it is large, or there are enough: then other graphs get its buffers of values."""
        store.clear()
        if len(self._free) < MOST and store.bytes <= MOST_BYTES:
            self._free.append(store)
        else:
            store.arenas.release()
