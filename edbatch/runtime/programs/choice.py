"""Which policy schedules rounds: the learned one, unless it takes more batches there than the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from edbatch.base.later import Later
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy, get_policy
from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.learned import RULE

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM

fsm = Later("edbatch.policy.fsm")

TRIALS = 16  # rounds of a set of types
MAX_SETS = 1000


class Choice:
    """Between a policy that was learned and the default rule, for the rounds of a graph.

    What was learned from whole graphs meets states in rounds that no whole graph has, and may then decide badly. So the
    first rounds of each set of types are scheduled by both, and the better is taken; later ones by the better of them
    all. Which types come follows from values (which experts are asked, say): where it does not know one of them,
    the rule decides, without a warning. All this depends on nothing but the graph, so that numbers remain the same
    to the last bit. Other policies are taken as they are.
    """

    def __init__(self) -> None:
        self._rule = get_policy(RULE)
        self._tallies: dict[tuple[str, ...], list[int]] = {}  # by types: rounds, and the batches of both in them

    def of(self, policy: Policy, graph: TypedGraph) -> Policy:
        """The one that schedules a round."""
        if isinstance(policy, Heuristic) or not isinstance(policy, fsm.FSM):
            return policy
        if (cast("FSM", policy).letters_of(graph.names) < 0).any():
            return self._rule
        tally = self._tallies.get(graph.names)
        if tally is None:
            if len(self._tallies) >= MAX_SETS:  # shapes vary per sample: nothing comes again
                self._tallies.clear()
            tally = self._tallies[graph.names] = [0, 0, 0]
        rounds, learned, rule = tally
        if rounds < TRIALS:
            learned, rule = len(policy.schedule(graph)), len(self._rule.schedule(graph))
            tally[:] = rounds + 1, tally[1] + learned, tally[2] + rule
        return policy if learned <= rule else self._rule
