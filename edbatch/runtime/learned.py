"""Policies that nobody asked for: learned when enough of a set of types has been seen, then reused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edbatch.base.stopwatch import Moment
from edbatch.errors import warn
from edbatch.graph.lines import users_line
from edbatch.policy.bounds import lower_bound
from edbatch.policy.policy import Policy
from edbatch.policy.qlearning import learn_unasked
from edbatch.policy.registry import get_policy, schedule_of
from edbatch.policy.typed_graph import TypedGraph

# A model whose shapes vary per sample has new types in every mini-batch. When this many seconds have gone into
# policies that never came to use again, learning stops.
WASTE_LIMIT = 20.0

# Learning takes 0.1 s, and 20 s of compilation the first time on a machine. A mini-batch that is large enough pays for
# it; small ones do when so many nodes of the same types have come.
LARGE = 1_000
MANY = 20_000

# Batches above the lower bound.
NEAR = 1

# Sets of types that are remembered; the oldest is forgotten.
MAX_SETS = 1000


@dataclass
class _Learned:
    policy: Policy
    seconds: float
    reused: bool = False


_learned: dict[frozenset[str], _Learned] = {}
_seen: dict[frozenset[str], int] = {}  # nodes of mini-batches that were too small to learn from


def default_policy(graph: TypedGraph) -> Policy:
    """The policy learned for a set of types that includes the graph's; `sufficient` as long as learning does not pay.

    It is learned from the first mini-batch of at least `LARGE` nodes, or when `MANY` nodes of these types have come,
    in 2 s of processor time at most: what is best then is taken, once and for all;
    unless `sufficient` leaves at most `NEAR` batches to be saved there: then these types have that, and nothing is
    learned.

    Where shapes vary per sample, every mini-batch has types of its own and nothing learned is used again: after
    `WASTE_LIMIT` seconds of that, with a warning, new sets get `sufficient`, which needs no learning.
    """
    names = frozenset(graph.names)
    found = _learned.get(names) or next((known for types, known in _learned.items() if names <= types), None)
    if found is None:
        seen = _seen.pop(names, 0) + len(graph)
        if len(graph) < LARGE and seen < MANY:
            _seen[names] = seen
            if len(_seen) > MAX_SETS:
                del _seen[next(iter(_seen))]
            return get_policy("sufficient")
        found = _learn(graph)
    else:
        found.reused = True
    _learned[names] = found
    if len(_learned) > MAX_SETS:
        del _learned[next(iter(_learned))]
    return found.policy


def worth_learning(graphs: Sequence[TypedGraph], coming: float) -> bool:
    """Whether learning a policy pays: a graph is large, or much is coming, and `sufficient` is not as good.

    Args:
        graphs: mini-batches, at least one.
        coming: nodes of their types, these included.
    """
    much = coming >= MANY or any(len(graph) >= LARGE for graph in graphs)
    return much and any(_leaves_batches(graph) for graph in graphs)


def _leaves_batches(graph: TypedGraph) -> bool:
    """Whether another policy than `sufficient` can save more batches than do not matter."""
    return len(schedule_of(get_policy("sufficient"), graph)) > lower_bound(graph) + NEAR


def waits(names: frozenset[str]) -> bool:
    """Whether learning for a set of types does not pay yet, so that another policy may come."""
    return names not in _learned and not any(names <= types for types in _learned)


def still_waits(names: frozenset[str], nodes: int) -> bool:
    """The same when so many nodes of these types come once more, which are counted as seen."""
    seen = _seen.get(names, 0) + nodes
    if nodes >= LARGE or seen >= MANY or not waits(names):
        return False
    _seen[names] = seen
    return True


def _learn(graph: TypedGraph) -> _Learned:
    sufficient = get_policy("sufficient")
    if not _leaves_batches(graph):
        return _Learned(sufficient, 0.0)
    wasted = sum(known.seconds for known in _learned.values() if not known.reused)
    if wasted > WASTE_LIMIT:
        warn(
            f"{wasted:.0f} s went into policies for sets of types that never came again (do shapes vary per sample?); "
            f"this one, run at {users_line()}, gets what eb.Graph(policy='sufficient') has from the beginning"
        )
        return _Learned(sufficient, 0.0)
    start = Moment.now()
    policy = learn_unasked(graph)
    end = Moment.now()
    return _Learned(
        policy, end.time - start.time - (end.compiling - start.compiling)
    )  # that is no fault of the graph's
