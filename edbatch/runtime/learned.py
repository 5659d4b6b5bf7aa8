"""Policies that nobody asked for: learned from the first mini-batch of each set of types, then reused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import perf_counter

from edbatch.errors import EdBatchWarning
from edbatch.policy.policy import Policy
from edbatch.policy.registry import get_policy
from edbatch.policy.typed_graph import TypedGraph

# A model whose shapes vary per sample has new types in every mini-batch. When this many seconds have gone into
# policies that never came to use again, learning stops.
WASTE_LIMIT = 20.0

# Sets of types that are remembered; the oldest is forgotten.
MAX_SETS = 1000


@dataclass
class _Learned:
    policy: Policy
    seconds: float
    reused: bool = False


_learned: dict[frozenset[str], _Learned] = {}


def default_policy(graph: TypedGraph) -> Policy:
    """The policy learned for a set of types that includes the graph's; learned now if there is none.

    Where shapes vary per sample, every mini-batch has types of its own and nothing learned is used again: after
    `WASTE_LIMIT` seconds of that, with a warning, new sets get `sufficient`, which needs no learning.
    """
    names = frozenset(graph.names)
    found = _learned.get(names) or next((known for types, known in _learned.items() if names <= types), None)
    if found is None:
        found = _learn(graph)
    else:
        found.reused = True
    _learned[names] = found
    if len(_learned) > MAX_SETS:
        del _learned[next(iter(_learned))]
    return found.policy


def _learn(graph: TypedGraph) -> _Learned:
    from numba.core.event import install_timer

    from edbatch.policy.qlearning import learn

    wasted = sum(known.seconds for known in _learned.values() if not known.reused)
    if wasted > WASTE_LIMIT:
        warnings.warn(
            f"{wasted:.0f} s went into policies for sets of types that never came again (do shapes vary per sample?); "
            "this one gets policy='sufficient'",
            EdBatchWarning,
            stacklevel=2,
        )
        return _Learned(get_policy("sufficient"), 0.0)
    compiling: list[float] = []  # once per machine, and no fault of the graph's
    start = perf_counter()
    with install_timer("numba:compile", compiling.append):
        policy = learn([graph])
    return _Learned(policy, perf_counter() - start - sum(compiling))
