"""Plans of what comes again: of small graphs, of mini-batches made of recordings, and of structures.

When the same is recorded, all is as it was; when it differs in words and labels alone, these are put where they belong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from edbatch.base.exclusive import lock
from edbatch.base.records import packing
from edbatch.devices import current_device
from edbatch.graph.columns import Pieces, Placed, Recorded
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.registry import is_known
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.learned import still_waits
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.structures import Integers
from edbatch.runtime.type_table import TypeTable, shared_table

if TYPE_CHECKING:
    from edbatch.runtime.backward.way import Flowed

MOST_BYTES = 1 << 26  # of all plans of one kind together
MOST_NODES = 1000  # of a graph that is found by all that was recorded: to go through it takes 20 ns a node
MOST_IN_BLOCKS = 10_000  # of one that was recorded in blocks, as arrays of expressions are: that takes 2 ns
MOST_IN_VAIN = 1000  # plans that are kept, and not used, before only what has been seen is kept
MOST_SEEN = 1 << 14  # graphs
MOST_MISSED = 200  # structures that were not found, less ten for each that was, before only one in eight is looked for
MOST_WAYS = 4  # back through one run, from several expressions and for several sets of gradients


class Remembered:
    """What became of a graph's first run; graphs that record the same have its records, as long as they do not grow.

    Args:
        table: of its types.
        nodes, plan: its records, which are copied.
        used: rows in use of each arena.
        n_sources, policy, fallbacks: see `Evaluation`.
        waiting: types for which a better policy may be learned later, and how many nodes there are; None: nothing will.
        fixes_device: whether its device follows from what was recorded, and is not the one in force then.
        integers: of a structure, where integers are in its records, which have tags there; None: they are the same.

    Attributes:
        ready: the programs that ran it, unless they saved.
        ways: gone back through it, see `runtime.backward`.
        bytes: of all arrays, and of the key, about.
        plans: where graphs find it; None: nowhere any more.
    """

    __slots__ = (
        "bytes", "fallbacks", "fixes_device", "integers", "n_sources", "nodes", "plan", "plans", "policy", "ready",
        "table", "used", "waiting", "ways",
    )  # fmt: skip

    def __init__(
        self, table: TypeTable, nodes: Nodes, plan: GrowingPlan, used: np.ndarray, n_sources: int,
        policy: Policy | None, waiting: frozenset[str] | None, fallbacks: int, fixes_device: bool,
        integers: Integers | None,
    ) -> None:  # fmt: skip
        self.table, self.fixes_device = ref(table), fixes_device
        self.nodes, self.plan, self.used = nodes.copy(), plan.copy(), used.copy()
        self.n_sources, self.policy, self.waiting, self.fallbacks = n_sources, policy, waiting, fallbacks
        self.integers = integers
        self.ready: Ready | None = None
        self.ways: dict[Hashable, Flowed] = {}
        self.plans: Plans | None = None
        self.bytes = 4000 + 2 * self.nodes.bytes + self.plan.bytes + self.used.nbytes


class Plans:
    """Those of one kind, no more than so many bytes; what was not used for longest is forgotten.

    Attributes:
        is_open: whether graphs look here, see `afresh`.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.bytes = 0
        self.hits = 0
        self.is_open = True
        self._most = most
        self._plans: OrderedDict[Hashable, Remembered] = OrderedDict()
        self._in_vain = 0
        self._seen: dict[int, None] = {}
        self._missed = self._asked = 0

    def find(self, key: Hashable) -> Remembered | None:
        """What is known, if the types are still numbered as they were."""
        with lock:
            found = self._plans.get(key)
            if found is None:
                self._missed = min(self._missed + 1, MOST_MISSED)
                return None
            table = found.table()
            is_current = table is not None and shared_table(table.device) is table
            if table is not None and not found.fixes_device:
                is_current = is_current and table.device is current_device()
            if not is_current or (found.waiting is not None and not still_waits(found.waiting)):
                self._forget(key)
                return None
            self._plans.move_to_end(key)
            self.hits += 1
            self._in_vain = max(0, self._in_vain - 1)
            self._missed = max(0, self._missed - 10)
            return found

    def is_worth_looking(self) -> bool:
        """Whether one in ten has been found lately; else it is now and then."""
        self._asked += 1
        return self._missed < MOST_MISSED or self._asked % 8 == 0

    def wants(self, key: Hashable) -> bool:
        """Whether a plan had better be kept: where samples differ, or are mixed in each epoch, none comes again."""
        return self._in_vain < MOST_IN_VAIN or self.has_seen(key)

    def has_seen(self, key: Hashable) -> bool:
        """Whether this was asked before, or about as lately as it would be kept."""
        number = hash(key)
        is_known = number in self._seen
        with lock:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen[number] = None
        return is_known

    def keep(self, key: Hashable, made: Remembered) -> None:
        """Keep a plan."""
        with lock:
            if key in self._plans:
                self._forget(key)
            self._plans[key], made.plans = made, self
            self.bytes += made.bytes
            self._in_vain += 1
            self._shrink()

    def keep_way(self, made: Remembered, key: Hashable, way: Flowed) -> None:
        """Keep a way back through what is kept."""
        with lock:
            if made.plans is self and len(made.ways) < MOST_WAYS:
                made.ways[key] = way
                made.bytes += way.bytes
                self.bytes += way.bytes
                self._shrink()

    def _shrink(self) -> None:
        while self.bytes > self._most:
            self._forget(next(iter(self._plans)))

    def _forget(self, key: Hashable) -> None:
        made = self._plans.pop(key)
        made.plans = None
        self.bytes -= made.bytes


#: Of mini-batches that were made of recordings, of small graphs, and of structures: whether one kind comes again says
#: nothing of the others.
of_recordings, of_graphs, of_structures = Plans(), Plans(), Plans()


@contextmanager
def afresh() -> Iterator[None]:
    """Have small graphs planned as if none had come before: for who measures what new ones take, with the same ones."""
    before, of_graphs.is_open, of_structures.is_open = of_graphs.is_open, False, False
    try:
        yield
    finally:
        of_graphs.is_open = of_structures.is_open = before


def plans_for(taken: Recorded | Pieces) -> Plans:
    """Where the plan of what was recorded is kept."""
    return of_recordings if isinstance(taken, Pieces) else of_graphs


def key_of(taken: Recorded | Pieces, policy: Policy | None, *told: Hashable) -> Hashable:
    """What is equal for two graphs if their first runs have one plan; None if nobody can tell, or it takes too long.

    Args:
        taken: all that was recorded.
        policy: of the graph.
        told: options and the like.
    """
    known = _known(policy)
    if known is _ANYONES:
        return None
    if isinstance(taken, Recorded):
        if not isinstance(taken.types, list) or len(taken.types) > MOST_NODES or not of_graphs.is_open:
            return None
        types, args = taken.types, taken.args
        # Bytes are told apart in a tenth of the time that tuples of integers are.
        return packing("i", len(types)).pack(*types), packing("q", len(args)).pack(*args), known, *told
    if not taken.has_recordings:
        return None
    if any(chunk.recording.drawn for chunk in taken.chunks if isinstance(chunk, Placed)):
        return None  # masks are other ones each time
    return taken.rows.tobytes(), tuple(taken.bases), taken.types.tobytes(), taken.args.tobytes(), known, *told


def has_structure(taken: Recorded | Pieces, policy: Policy | None, has_key: bool) -> bool:
    """Whether a graph is to be found by its structure, too: one that does not take too long to go through.

    Args:
        taken, policy: as of `key_of`.
        has_key: whether that gave one.
    """
    if not of_structures.is_open or _known(policy) is _ANYONES:
        return False
    if isinstance(taken, Pieces):
        fits = not taken.has_recordings and taken.n <= MOST_IN_BLOCKS
    else:
        fits = has_key or (not isinstance(taken.types, list) and len(taken.types) <= MOST_IN_BLOCKS)
    return fits and of_structures.is_worth_looking()


def structure_key(nodes: Nodes, places: np.ndarray, policy: Policy | None, *told: Hashable) -> Hashable:
    """What is equal for two graphs of one table if their first runs have one plan, whatever integers are at places."""
    args = nodes.args[: nodes.n_args].copy()
    args[places] = 0
    return nodes.types[: nodes.n].tobytes(), args.tobytes(), _known(policy), *told


_ANYONES = object()  # a policy of which nobody knows what it follows from


def _known(policy: Policy | None) -> Any:
    """What a policy's schedules follow from, besides the graph."""
    if type(policy) is Heuristic:
        return policy.name
    return policy if is_known(policy) else _ANYONES
