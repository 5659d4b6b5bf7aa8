"""Policies that follow a fixed rule."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, shown
from edbatch.policy.policy_file import HeuristicFile, Training, write_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import Int32s, TypedGraph, require_typed_graph

loops, topology = LazyModule("edbatch.policy.loops"), LazyModule("edbatch.policy.topology")


class Heuristic:
    """A policy that follows a rule and learns nothing.

    Its `meaning` says what the rule does, and `docs/policies.md` why: `depth` (TensorFlow Fold), `agenda` (DyNet),
    `critical-path` (the default), `sufficient` (section 5.3 of the paper), `improved-sort` (Suarez and
    Zhu 2019), and `none`.

    Args:
        name: one of these names.
        training: set by `learn` when this rule beat everything that could be learned.

    Raises:
        EdBatchError: unknown name.

    Example:
        >>> graph = TypedGraph.from_lists(["a", "b", "a"], [[], [0], []])
        >>> [len(Heuristic(name).schedule(graph)) for name in ("none", "depth", "critical-path")]
        [3, 2, 2]
    """

    def __init__(self, name: str, training: Training | None = None) -> None:
        if name not in RULES:
            raise EdBatchError(f"no policy is named {shown(name)}; there are {', '.join(RULES)}")
        self.name = name
        self.meaning = RULES[name]
        self.training = training

    def __repr__(self) -> str:
        return f"Heuristic({self.name!r})"

    def schedule(self, graph: TypedGraph) -> Schedule:
        """The batches of `graph`; it must have no cycle."""
        require_typed_graph(f"policy {self.name!r}", graph)
        match self.name:
            case "critical-path":
                return Schedule(*loops.by_critical_path(graph.columns(), len(graph.names)))
            case "sufficient":
                return Schedule(*loops.by_fixed_rule(graph.columns(), len(graph.names), np.zeros(0)))
            case "agenda":
                return Schedule(*loops.by_fixed_rule(graph.columns(), len(graph.names), _average_depths(graph)))
            case "none":
                return Schedule(graph.topological, np.arange(len(graph) + 1), graph.types[graph.topological])
        key = _depths(graph, self.name == "improved-sort").astype(np.int64) * len(graph.names) + graph.types
        order = np.argsort(key, kind="stable").astype(np.int32)
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        return Schedule(order, np.append(starts, len(graph)), graph.types[order[starts]])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file that names this rule."""
        write_policy(path, HeuristicFile(self.name, self.training))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Raise an EdBatchError: a rule has no states to draw, unlike the `FSM` that `learn` may return."""
        raise EdBatchError(
            f"{path}: the rule {self.name!r} has no states to draw, as a learned machine has; graph.draw(path) draws a "
            "graph in the colours of its batches"
        )


def _depths(graph: TypedGraph, from_roots: bool = False) -> Int32s:
    """int32[n]: the longest path from an input or, if so asked, how much shorter that to a root is than the longest."""
    if not from_roots:
        return topology.longest_paths(graph.indptr, graph.operands, graph.topological, np.ones(len(graph), bool)) - 1
    to_root = topology.longest_paths(*graph.successors, graph.topological[::-1].copy(), np.ones(len(graph), bool))
    return to_root.max(initial=0) - to_root


def _average_depths(graph: TypedGraph) -> NDArray[np.float64]:
    """float64[T]: the average depth of the nodes of each type."""
    types, kinds = graph.types, len(graph.names)
    return np.bincount(types, _depths(graph), kinds) / np.maximum(np.bincount(types, minlength=kinds), 1)


#: The rules by name, and what each does, as sentences without their subject.
RULES = {
    "depth": "runs the nodes of one type at one depth together, depth by depth",
    "agenda": "runs the ready type of smallest average depth, taken once over all its nodes",
    "critical-path": "runs the type with most work ahead of those whose batch lowers the bound of what remains",
    "sufficient": "runs the type with the largest ready share of its nodes that wait for no other of their type",
    "improved-sort": "runs the nodes of one type at one distance from the roots together, the farthest first",
    "none": "runs every node alone",
}
#: Of graphs that name no policy.
DEFAULT = "critical-path"
RUN_TIME_RULES = ("critical-path", "sufficient", "agenda", "depth")
