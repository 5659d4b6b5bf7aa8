"""Policies that nobody asked for: learned from the first mini-batch of each set of types, then reused."""

from __future__ import annotations

import warnings

from edbatch.errors import EdBatchWarning
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy
from edbatch.policy.typed_graph import TypedGraph

# A model whose shapes vary per sample has new types in every mini-batch; learning each time would cost more than
# batching gains.
MAX_LEARNED = 32

_learned: dict[frozenset[str], Policy] = {}


def default_policy(graph: TypedGraph) -> Policy:
    """The policy learned for a set of types that includes the graph's; learned now if there is none."""
    names = frozenset(graph.names)
    found = _learned.get(names)
    if found is not None:
        return found
    for known, policy in _learned.items():
        if names <= known:
            return policy
    if len(_learned) >= MAX_LEARNED:
        if len(_learned) == MAX_LEARNED:
            warnings.warn(
                f"policies were learned for {MAX_LEARNED} sets of types and here is another (do shapes vary per "
                "sample?); from now on new sets use policy='sufficient'",
                EdBatchWarning,
                stacklevel=2,
            )
        policy = _learned[names] = get_policy("sufficient")
        return policy
    from edbatch.policy.qlearning import learn

    policy = _learned[names] = learn([graph])
    return policy
