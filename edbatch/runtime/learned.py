"""The policy of graphs that name none: the rule `critical-path`, until learning a machine pays; and that of rounds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from edbatch.base.lazy import LazyModule
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy, get_policy, schedule_of
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph, lower_bound

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

fsm = LazyModule("edbatch.policy.fsm")
qlearning = LazyModule("edbatch.policy.qlearning")
code_cache = LazyModule("edbatch.compiling.cache")

RULE = "critical-path"
CLOSE = 1.03  # times the lower bound: there is too little to save
BATCH_SECONDS = 10e-6  # of a batch besides its arithmetic: planned, gathered, launched
LEARNING_SECONDS = 0.5
TIMES = 10  # what could have been saved so far, over what learning takes
FIRST_LOOK = 64  # mini-batches; the next look is at four times as many
MAX_GRAPHS = 3  # that a machine is learned from
MAX_SETS = 1000  # of types that are known; the oldest is forgotten


@dataclass
class _Types:
    """The mini-batches with one set of types."""

    policy: Policy = field(default_factory=lambda: get_policy(RULE))
    came: int = 0
    look: int = field(default_factory=lambda: FIRST_LOOK)  # the mini-batch that decides anew about learning; 0: none
    graphs: list[TypedGraph] = field(default_factory=list)

    def decide(self, graph: TypedGraph) -> None:
        """Learn if that pays. No clock has a say in it: numbers are the same in each process."""
        self.graphs = [*self.graphs, graph][-MAX_GRAPHS:]
        self.look *= 4
        if savings([graph], self.came) < TIMES * LEARNING_SECONDS:
            return
        least, taken = lower_bound(graph), len(schedule_of(self.policy, graph))
        code_cache.say_once(
            f"edbatch: learning to batch, for some {LEARNING_SECONDS:g} s; {RULE} takes {taken} batches where {least} "
            "may do",
            _said,
        )
        self.policy = qlearning.learn(self.graphs, encoding="ahead", seconds=LEARNING_SECONDS, progress=False)
        self.look = 0
        self.graphs.clear()


_said = threading.Event()
_known: dict[frozenset[str], _Types] = {}


def default_policy(graph: TypedGraph) -> Policy:
    """The rule `critical-path`, or a machine that was learned for the graph's set of types.

    A machine is learned where the rule leaves more than 3 % above the lower bound and the batches that it
    could have saved in the mini-batches so far are worth ten times the learning. Those with a cached plan keep it, and
    do not count.
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


def savings(graphs: Sequence[TypedGraph], coming: float) -> float:
    """The seconds that the best machine could save in `coming` mini-batches like these; 0 where the rule is close."""
    batches = sum(len(schedule_of(get_policy(RULE), graph)) for graph in graphs)
    bound = sum(map(lower_bound, graphs))
    return 0.0 if batches <= CLOSE * bound else coming * (batches - bound) / len(graphs) * BATCH_SECONDS


def schedule_of_round(policy: Policy | None, graph: TypedGraph) -> Schedule:
    """The batches of a round of programs: a policy's; where it was learned, or is None, no more than the rule's.

    What was learned from whole graphs meets states in rounds that no whole graph has, and may then decide badly. And
    which types come follows from values (which experts are asked, say): where it does not know one of them, the rule
    decides, without a warning. All this depends on nothing but the graph, so that numbers remain the same to the last
    bit.
    """
    if policy is not None and (isinstance(policy, Heuristic) or not isinstance(policy, fsm.FSM)):
        return schedule_of(policy, graph)
    by_rule = get_policy(RULE).schedule(graph)
    if policy is None or (cast("FSM", policy).letters_of(graph.names) < 0).any():
        return by_rule
    learned = policy.schedule(graph)
    return learned if len(learned) <= len(by_rule) else by_rule
