"""The plan cache: plans of what comes again, found by structure.

Neither batches nor rows depend on the integers of nodes (words, labels, seeds of masks), unless what repeated look-ups
give is computed once. So graphs that record the same but for integers have one plan, kept once it was made twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from edbatch.base.context_stack import contextmanager
from edbatch.base.locking import lock
from edbatch.devices import current_device
from edbatch.graph.columns import Recorded
from edbatch.graph.node_type import TYPES
from edbatch.memory.plan.growing import GrowingPlan, Used
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy, is_known
from edbatch.runtime.compile.program_table import Ready
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.split import MOST_DISTINCT
from edbatch.runtime.type_table import TypeTable, looking, shared_table

if TYPE_CHECKING:
    from edbatch.runtime.backward.plan import BackwardPlan

MOST_BYTES = 1 << 27  # of all plans together
MOST_NODES = 100_000  # of a graph: to go through them takes 5 ns a node
MOST_SEEN = 1 << 14  # graphs
MOST_BACKWARD = 4  # backward plans of one run, from several expressions and for several sets of gradients


@dataclass(slots=True, eq=False)
class CachedPlan:
    """The plan of a graph's first run; graphs of its structure share its records as long as they do not grow.

    Attributes:
        table: of its types.
        nodes, plan: its records, which are copied; used: rows in use of each arena, too.
        end: what is in use of the plan.
        n_sources, policy, fallbacks: see `Evaluation`.
        fixes_device: whether its device follows from what was recorded, and is not the one in force then.
        n_integers: of the graph.
        ready: the programs that ran it, by whether they saved.
        backward: backward plans of it, see `runtime.backward`.
        is_kept: whether the cache has it still.
        bytes: of all arrays, and of the key, about.
    """

    table: ref[TypeTable]
    nodes: Nodes
    plan: GrowingPlan
    used: np.ndarray
    n_sources: int
    policy: Policy | None
    fallbacks: int
    fixes_device: bool
    n_integers: int
    ready: dict[bool, Ready] = field(default_factory=dict)
    backward: dict[Hashable, BackwardPlan] = field(default_factory=dict)
    is_kept: bool = False
    bytes: int = 0
    end: Used = field(init=False)

    def __post_init__(self) -> None:
        self.nodes, self.plan, self.used = self.nodes.copy(), self.plan.copy(), self.used.copy()
        self.end = self.plan.used
        self.bytes = 4000 + 2 * self.nodes.bytes + self.plan.bytes + self.used.nbytes


class PlanCache:
    """Plans by structure, no more than so many bytes; what was not used for longest is dropped.

    Attributes:
        is_open: whether graphs look here, see `afresh`.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.bytes = 0
        self.hits = 0
        self.is_open = True
        self._most = most
        self._plans: OrderedDict[Hashable, CachedPlan] = OrderedDict()
        self._seen: dict[int, None] = {}

    def find(self, key: Hashable) -> tuple[CachedPlan | None, bool]:
        """The plan of a structure, if types are still numbered as they were; else whether it came before."""
        with lock:
            found = self._plans.get(key)
            if found is None:
                number = hash(key)
                is_known = number in self._seen
                if len(self._seen) >= MOST_SEEN:
                    self._seen.clear()
                self._seen[number] = None
                return None, is_known
            table = found.table()
            is_current = table is not None and shared_table(table.device, table.plain) is table
            if table is not None and not found.fixes_device:
                is_current = is_current and table.device is current_device()
            if not is_current:
                self._forget(key)
                return None, True
            self._plans.move_to_end(key)
            self.hits += 1
            return found, True

    def keep(self, key: Hashable, made: CachedPlan) -> None:
        """Keep a plan."""
        with lock:
            if key in self._plans:
                self._forget(key)
            self._plans[key], made.is_kept = made, True
            self.bytes += made.bytes
            self._shrink()

    def keep_backward(self, made: CachedPlan, key: Hashable, plan: BackwardPlan) -> None:
        """Keep a backward plan of what is kept, in the place of one that is no longer right."""
        with lock:
            before = made.backward.get(key)
            if made.is_kept and (before is not None or len(made.backward) < MOST_BACKWARD):
                made.backward[key] = plan
                more = plan.bytes - (0 if before is None else before.bytes)
                made.bytes += more
                self.bytes += more
                self._shrink()

    def _shrink(self) -> None:
        while self.bytes > self._most:
            self._forget(next(iter(self._plans)))

    def _forget(self, key: Hashable) -> None:
        made = self._plans.pop(key)
        made.is_kept = False
        self.bytes -= made.bytes


plans = PlanCache()


@contextmanager
def afresh() -> Iterator[None]:
    """Have graphs planned as if none had come before: for who measures what new ones take, with the same ones."""
    before, plans.is_open = plans.is_open, False
    try:
        yield
    finally:
        plans.is_open = before


def key_of(taken: Recorded, policy: Policy | None, splits: bool, *told: Hashable) -> Hashable:
    """What is equal for two graphs if their first runs have one plan; None if nobody can tell, or it takes too long.

    Args:
        splits: whether cells may be split; told: more that plans follow from.
    """
    if not is_known(policy) or not plans.is_open or len(taken.types) > MOST_NODES:
        return None
    # Bytes are told apart in a tenth of the time that tuples of integers are.
    integers = taken.integers.tobytes() if splits and _repeats_look_ups(taken) else b""
    known = policy.name if type(policy) is Heuristic else policy
    return taken.types.tobytes(), taken.operands.tobytes(), integers, known, splits, *told


def _repeats_look_ups(taken: Recorded) -> bool:
    """Whether plans may compute once what several nodes look up: the structure alone does not say."""
    if not looking:
        return False
    types, integers = taken.types, taken.integers
    counts = np.bincount(types)
    present = counts.nonzero()[0].tolist()
    if looking.isdisjoint(present):
        return False
    of_type = np.zeros(len(counts), np.int64)
    of_type[present] = [TYPES[id].n_integers for id in present]
    n_integers = of_type[types]
    begins = np.cumsum(n_integers) - n_integers
    values = (integers[begins[types == id]].tolist() for id in present if id in looking)
    return any(len(set(found)) <= MOST_DISTINCT * len(found) for found in values)
