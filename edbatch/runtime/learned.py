"""The policy of graphs that name none: the rule `critical-path`, until learning a machine pays."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from edbatch.base.later import Later
from edbatch.policy.bounds import lower_bound
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy, schedule_of
from edbatch.policy.typed_graph import TypedGraph

qlearning = Later("edbatch.policy.qlearning")
shown = Later("edbatch.compiling.shown")

RULE = "critical-path"
CLOSE = 1.03  # times the lower bound: there is too little to save
BATCH_SECONDS = 10e-6  # of a batch besides its arithmetic: planned, gathered, launched
LEARNING_SECONDS = 0.5
TIMES = 10  # what could have been saved so far, over what learning takes
FIRST_LOOK = 64  # mini-batches; later looks are at four times as many
MAX_GRAPHS = 3  # that a machine is learned from
MAX_SETS = 1000  # of types that are known; the oldest is forgotten


@dataclass
class _Types:
    """The mini-batches with one set of types."""

    policy: Policy = field(default_factory=lambda: get_policy(RULE))
    came: int = 0
    look: int = field(default_factory=lambda: FIRST_LOOK)  # the mini-batch that decides anew about learning; 0: none
    graphs: list[TypedGraph] = field(default_factory=list)
    learning: threading.Thread | None = None
    learned: Policy | None = None

    def decide(self, graph: TypedGraph) -> None:
        """Begin to learn if that pays, or take what was learned."""
        if self.learning is not None:  # which no clock decides: numbers are the same in each process
            self.learning.join()
            self.policy = self.learned or self.policy
            self.graphs.clear()
            self.look = 0
            return
        self.graphs = [*self.graphs, graph][-MAX_GRAPHS:]
        if savings([graph], self.came) < TIMES * LEARNING_SECONDS:
            self.look *= 4
            return
        least, taken = lower_bound(graph), len(schedule_of(self.policy, graph))
        shown.say_once(
            f"edbatch: learning to batch beside the program, for some {LEARNING_SECONDS:g} s; {RULE} takes {taken} "
            f"batches where {least} may do",
            _said,
        )
        self.learning = threading.Thread(target=self._learn, args=(self.graphs,), daemon=True)
        self.learning.start()
        self.look *= 2  # by then it has long been learned, so that nobody waits

    def _learn(self, graphs: list[TypedGraph]) -> None:
        learned = qlearning.learn(graphs, encoding="ahead", seconds=LEARNING_SECONDS, progress=False)
        learned.schedule(graphs[0])  # what that needs is compiled here, so that no mini-batch waits for it
        self.learned = learned


_said = threading.Event()
_known: dict[frozenset[str], _Types] = {}


def default_policy(graph: TypedGraph) -> Policy:
    """The rule `critical-path`, or a machine that was learned for the graph's set of types.

    A machine is learned, in a thread, where the rule leaves more than 3 % above the lower bound and the batches that it
    could have saved in the mini-batches so far are worth ten times the learning.
    """
    names = frozenset(graph.names)
    known = _known.get(names)
    if known is None:
        if len(_known) >= MAX_SETS:
            del _known[next(iter(_known))]
        known = _known[names] = _Types()
    known.came += 1
    if known.came == known.look:
        known.decide(graph)
    return known.policy


def waits(names: frozenset[str]) -> bool:
    """Whether another policy may come for a set of types."""
    known = _known.get(names)
    return known is None or known.look > 0


def still_waits(names: frozenset[str]) -> bool:
    """The same when one more mini-batch of these types comes; it is counted, unless something is to be decided."""
    known = _known.get(names)
    if known is None or known.look == 0 or known.came + 1 == known.look:
        return False
    known.came += 1
    return True


def savings(graphs: Sequence[TypedGraph], coming: float) -> float:
    """The seconds that the best machine could save in `coming` mini-batches like these; 0 where the rule is close."""
    batches = sum(len(schedule_of(get_policy(RULE), graph)) for graph in graphs)
    bound = sum(map(lower_bound, graphs))
    return 0.0 if batches <= CLOSE * bound else coming * (batches - bound) / len(graphs) * BATCH_SECONDS
