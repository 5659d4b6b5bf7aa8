"""What compiled code keeps, and grows, of one graph; the next graph of its types goes on with it."""

from __future__ import annotations

import itertools
from heapq import heappop, heappush

import numpy as np

from edbatch.compiling.array_table import ArrayTable
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import SAVING
from edbatch.memory.plan.arenas import Arenas, GradientRows
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.memory.plan.pool import BufferPool, KeptBuffer
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.nodes import Nodes

MOST_BYTES = 1 << 26  # of a store that is kept
MOST = 4  # stores that are kept for graphs of one table


class Store:
    """The records of a graph.

    Attributes:
        number: its own.
        nodes, plan, arenas: what was taken over, what has run, and the values.
        memory: where they are, as compiled code was told last, by whether it saves, and adds rows.
        back: the plan of the backward pass.
        gradients: what the last backward pass has filled.
        saving: where the last run that saves values had them; see `memory.plan.addresses.SavingRows`.
        scratch: of one run, or one backward pass; the next uses it again.
    """

    __slots__ = ("arenas", "back", "gradients", "memory", "nodes", "number", "plan", "saving", "scratch")

    def __init__(self, number: int, windows: Windows, pool: BufferPool) -> None:
        self.number = number
        self.nodes = Nodes()
        self.plan = GrowingPlan()
        self.arenas = Arenas(windows, pool)
        self.memory: dict[tuple[bool, bool], ArrayTable[Memory]] = {}
        self.saving = np.zeros(0, SAVING)
        self.back = GrowingPlan()
        self.scratch = KeptBuffer(pool)
        self.gradients = GradientRows(windows, self.arenas, pool)

    def release(self) -> None:
        """Give all that is a device's memory to others; the values are gone."""
        self.scratch.give_back()
        self.gradients.give_back()
        self.arenas.release()

    def clear(self) -> None:
        """Have nothing left but room."""
        self.gradients.release()
        self.arenas.clear()
        self.nodes.clear()
        self.plan.clear()

    @property
    def bytes(self) -> int:
        """Of all records and values, with their room."""
        of_device = self.arenas.room + self.gradients.room + self.scratch.bytes
        return self.nodes.bytes + self.plan.bytes + self.back.bytes + of_device


class Stores:
    """Those that no graph has now, the oldest first.

    So graphs that come again in the same order, several at a time, find their values where they were, whichever was
    given back first; a GPU repeats what was recorded only then.
    """

    def __init__(self, windows: Windows, pool: BufferPool) -> None:
        self._made_of = windows, pool
        self._free: list[tuple[int, Store]] = []
        self._numbers = itertools.count()

    def take(self) -> Store:
        """One without nodes."""
        try:
            return heappop(self._free)[1]
        except IndexError:
            return Store(next(self._numbers), *self._made_of)

    def give_back(self, store: Store) -> None:
        """Have it used again, unless it is large, or there are enough: then other graphs get its buffers of values."""
        store.clear()
        if len(self._free) < MOST and store.bytes <= MOST_BYTES:
            heappush(self._free, (store.number, store))
        else:
            store.release()
