"""Which operations run together: frontier, state encodings, FSM, Q-learning, heuristics and bounds.

A policy sees typed graphs as integer arrays and returns schedules; it knows nothing of what the nodes
compute.

Example:
    >>> from edbatch.policy import TypedGraph, get_policy, learn, lower_bound
    >>> graph = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
    >>> len(get_policy("depth").schedule(graph)), lower_bound(graph)
    (4, 3)
    >>> len(learn([graph]).schedule(graph))
    3
"""

from typing import TYPE_CHECKING, Any

from edbatch.base.lazy import imported as _imported
from edbatch.policy.heuristics import Heuristic
from edbatch.policy.policy import Policy, get_policy
from edbatch.policy.recorded import read_graph, write_graph
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph, lower_bound

if TYPE_CHECKING:
    from edbatch.policy.fsm import FSM
    from edbatch.policy.qlearning import learn

__all__ = [
    "FSM",
    "Heuristic",
    "Policy",
    "Schedule",
    "TypedGraph",
    "get_policy",
    "learn",
    "lower_bound",
    "read_graph",
    "write_graph",
]

_COMPILED = {"FSM": "fsm", "learn": "qlearning"}  # their modules import Numba, which costs 0.25 s


def __getattr__(name: str) -> Any:
    if name not in _COMPILED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_imported(f"{__name__}.{_COMPILED[name]}"), name)
