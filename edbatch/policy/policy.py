"""What every batching policy can do."""

import os
from typing import Protocol, runtime_checkable

from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph


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
