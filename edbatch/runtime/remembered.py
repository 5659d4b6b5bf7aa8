"""Plans of mini-batches that were made of recordings: when the same come in the same order, all is as it was."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from edbatch.base.exclusive import lock
from edbatch.graph.columns import Pieces, Placed
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy
from edbatch.policy.registry import is_known
from edbatch.runtime.learned import still_waits
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_table import TypeTable, shared_table

MOST_BYTES = 1 << 26  # of all plans together
MOST_IN_VAIN = 256  # plans that are forgotten unused before only what has been seen is kept
MOST_SEEN = 1 << 14  # mini-batches


class Remembered(NamedTuple):
    """What became of a graph's first run.

    Attributes:
        table: of its types, while it is there.
        nodes: the columns of `Nodes`, and the integers.
        plan: the tables of a `GrowingPlan`.
        used: rows in use of each arena.
        n_sources, policy, fallbacks: see `Evaluation`.
        waiting: types for which a better policy may be learned later, and how many nodes there are; None: nothing will.
        recorded: the columns of `sharing.Recorded`, where equal nodes are computed once.
    """

    table: ref[TypeTable]
    nodes: tuple[np.ndarray, ...]
    plan: tuple[np.ndarray, ...]
    used: np.ndarray
    n_sources: int
    policy: Policy | None
    waiting: tuple[frozenset[str], int] | None
    fallbacks: int
    recorded: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls, table: TypeTable, nodes: Nodes, plan: GrowingPlan, arenas: Arenas, n_sources: int,
        policy: Policy | None, waiting: tuple[frozenset[str], int] | None, fallbacks: int,
    ) -> Remembered:  # fmt: skip
        """What became of a first run, once it is planned."""
        used = arenas.rows["used"].copy()
        return cls(ref(table), nodes.kept(), plan.copies(), used, n_sources, policy, waiting, fallbacks)

    def put(self, nodes: Nodes, plan: GrowingPlan, arenas: Arenas) -> None:
        """Put it into the empty records of another graph."""
        nodes.put(self.nodes)
        plan.reserve(nodes.n, nodes.n_args)
        plan.put(self.plan)
        arenas.rows["used"][: len(self.used)] = self.used

    @property
    def bytes(self) -> int:
        """Of all arrays, about."""
        return 1000 + sum(array.nbytes for array in (*self.nodes, *self.recorded, *self.plan, self.used))


class Plans:
    """Those of the process, no more than so many bytes; what was not used for longest is forgotten."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.bytes = 0
        self.hits = 0
        self._most = most
        self._plans: OrderedDict[Hashable, Remembered] = OrderedDict()
        self._in_vain = 0
        self._seen: dict[int, None] = {}

    def find(self, key: Hashable) -> Remembered | None:
        """What is known, if the types are still numbered as they were."""
        with lock:
            found = self._plans.get(key)
            if found is None:
                return None
            table = found.table()
            is_over = table is None or shared_table(table.device) is not table
            if is_over or (found.waiting is not None and not still_waits(*found.waiting)):
                self._forget(key)
                return None
            self._plans.move_to_end(key)
            self.hits += 1
            self._in_vain = 0
            return found

    def wants(self, key: Hashable) -> bool:
        """Whether a plan had better be kept: where mini-batches are mixed anew in each epoch, none comes again."""
        if self._in_vain < MOST_IN_VAIN:
            return True
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
            self._plans[key] = made
            self.bytes += made.bytes
            while self.bytes > self._most:
                self._forget(next(iter(self._plans)))
                self._in_vain += 1

    def _forget(self, key: Hashable) -> None:
        self.bytes -= self._plans.pop(key).bytes


plans = Plans()


def key_of(pieces: Pieces, policy: Policy | None, *told: Hashable) -> Hashable:
    """What is equal for two graphs if their first runs have one plan; None if nobody can tell.

    Args:
        pieces: all that was recorded.
        policy: of the graph.
        told: options and the like.
    """
    if not pieces.has_recordings:
        return None
    if any(chunk.recording.drawn for chunk in pieces.chunks if isinstance(chunk, Placed)):
        return None  # masks are other ones each time
    known: Any = policy
    if type(policy) is Heuristic:
        known = policy.name
    elif not is_known(policy):
        return None
    return (
        pieces.rows.tobytes(), tuple(pieces.bases), pieces.types.tobytes(), pieces.args.tobytes(), known, *told
    )  # fmt: skip
