"""The batches of a round of programs."""

from __future__ import annotations

from edbatch.policy.heuristics import DEFAULT, Heuristic
from edbatch.policy.policy import Policy, get_policy, schedule_of
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph


def schedule_of_round(policy: Policy, graph: TypedGraph) -> Schedule:
    """The batches of a round of programs: a policy's; where it was learned, no more than the default rule's.

    What was learned from whole graphs meets states in rounds that no whole graph has, and may then decide badly. And
    which types come follows from values (which experts are asked, say): where it does not know one of them, the rule
    decides, without a warning.
    """
    if isinstance(policy, Heuristic) or not hasattr(policy, "letters_of"):
        return schedule_of(policy, graph)
    by_rule = get_policy(DEFAULT).schedule(graph)
    if (policy.letters_of(graph.names) < 0).any():
        return by_rule
    learned = policy.schedule(graph)
    return learned if len(learned) <= len(by_rule) else by_rule
