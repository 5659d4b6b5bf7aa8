"""What every batching policy can do, and policies by name, by file, or as they are."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Protocol, runtime_checkable

import numpy as np

from edbatch.base.files import checked_path
from edbatch.base.lazy import LazyModule
from edbatch.base.locking import allow_reentry
from edbatch.errors import EdBatchError, shown
from edbatch.policy.heuristics import RULES, Heuristic
from edbatch.policy.policy_file import FSMFile, read_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph

fsm = LazyModule("edbatch.policy.fsm")


@runtime_checkable
class Policy(Protocol):
    """Decides which operations run together (the paper's policy π of Algorithm 1).

    Example:
        >>> from edbatch.policy import Policy, TypedGraph, get_policy
        >>> graph = TypedGraph.from_lists(["leaf", "leaf", "sum"], [[], [], [0, 1]])
        >>> policy = get_policy("sufficient")
        >>> isinstance(policy, Policy), policy.name, len(policy.schedule(graph))
        (True, 'sufficient', 2)
    """

    name: str

    def schedule(self, graph: TypedGraph) -> Schedule:
        """The batches of `graph`, in order of execution; the same every time."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file that `get_policy` reads back."""
        ...


def get_policy(spec: str | os.PathLike[str] | Policy) -> Policy:
    """The policy that `spec` names.

    Args:
        spec: the name of a `Heuristic`, the path of a policy file, or a policy, which is returned as it is. A name
            wins over a file of the same name; write `./depth` for the file.

    Raises:
        EdBatchError: neither a name nor a file, or a bad policy file.

    Example:
        >>> from edbatch import get_policy
        >>> get_policy("depth").name
        'depth'
        >>> get_policy("fastest")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: no policy is named 'fastest' and there is no such file; ...
    """
    if not isinstance(spec, str | os.PathLike):
        # asking for a `Policy` takes 25 us, and a graph in all 250
        if isinstance(spec, type) or not callable(getattr(spec, "schedule", None)):
            raise EdBatchError(f"expected a policy, a name or a path, got {type(spec).__name__}")
        return spec
    if isinstance(spec, str) and spec in RULES:
        return Heuristic(spec)
    if not os.path.isfile(checked_path(spec)):
        found = "it is no file" if os.path.exists(spec) else "there is no such file"
        raise EdBatchError(f"no policy is named {shown(os.fspath(spec))} and {found}; names are {', '.join(RULES)}")
    content = read_policy(spec)
    if isinstance(content, FSMFile):
        return fsm.FSM.from_file(spec, content)
    try:
        return Heuristic(content.name, content.training)
    except EdBatchError as error:
        raise EdBatchError(f"{spec}: {error}") from error


# Whose schedules need no check in every mini-batch: tests check them on random graphs.
_OWN = ("edbatch.policy.fsm", "edbatch.policy.heuristics")


def is_known(policy: Policy | None) -> bool:
    """Whether a policy is one of ours, or will be."""
    return policy is None or type(policy).__module__ in _OWN


def schedule_of(policy: Policy, graph: TypedGraph) -> Schedule:
    """The schedule that a policy makes of a graph, checked where it is not ours: an EdBatchError names the fault."""
    if is_known(policy):
        return policy.schedule(graph)
    with allow_reentry():
        schedule = policy.schedule(deepcopy(graph))  # nothing that it does with it changes this one
    name = getattr(policy, "name", type(policy).__name__)
    if not isinstance(schedule, Schedule):
        raise EdBatchError(f"policy {name!r}: expected a Schedule, got {type(schedule).__name__}")
    try:
        schedule.validate(graph)
    except EdBatchError as error:
        raise EdBatchError(f"policy {name!r}: its schedule is wrong: {error}") from None
    order, offsets, types = schedule.order, schedule.offsets, schedule.types
    return Schedule(order.astype(np.int32), offsets.astype(np.int64), types.astype(np.int32))
