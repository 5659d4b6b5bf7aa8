"""Policies that follow a fixed rule."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from edbatch.base.later import Later
from edbatch.errors import EdBatchError, shown
from edbatch.policy.policy_file import VERSION, HeuristicFile, Training, write_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import TypedGraph

loops = Later("edbatch.policy.heuristic_loops")
sorting_loops = Later("edbatch.policy.sorting_loops")
topology = Later("edbatch.policy.topology")


class Heuristic:
    """A policy that follows a rule and learns nothing.

    - `depth`: nodes of one type at one topological depth (TensorFlow Fold).
    - `agenda`: the ready type of smallest average depth, averaged once over all its nodes (DyNet).
    - `critical-path`: of the ready types whose batch lowers the bound of what remains, the one with most work ahead;
      the default. Not in the paper: `docs/batching.md` has the argument.
    - `sufficient`: the ready type of largest ratio |READY| / |TOTAL|, path reading (section 5.3).
    - `standard-sort`: each sample as a row of nodes, depth first; nodes of one type in one column (Suarez and Zhu
      2019, "standard topological sort").
    - `improved-sort`: nodes of one type at one distance from the roots, the farthest first (Suarez and Zhu 2019,
      "improved topological sort"); `depth` counts from the inputs.
    - `none`: each node alone.

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
        self.training = training

    def __repr__(self) -> str:
        return f"Heuristic({self.name!r})"

    @property
    def meaning(self) -> str:
        """What the rule does, as a sentence without its subject: what its docstring says."""
        said = " ".join((RULES[self.name].__doc__ or "Says nothing of itself.").split())
        return said[0].lower() + said[1:].removesuffix(".")

    def schedule(self, graph: TypedGraph) -> Schedule:
        """The batches of `graph`; it must have no cycle."""
        return RULES[self.name](graph)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file that names this rule."""
        write_policy(path, HeuristicFile(VERSION, "heuristic", self.name, self.training))


def _none(graph: TypedGraph) -> Schedule:
    """Runs every node alone."""
    order = graph.topological
    return Schedule(order, np.arange(len(graph) + 1), graph.types[order])


def _depth(graph: TypedGraph) -> Schedule:
    """Runs the nodes of one type at one depth together, depth by depth."""
    return _by_steps(graph, topology.depths(graph.indptr, graph.operands, graph.topological))


def _by_steps(graph: TypedGraph, step: np.ndarray) -> Schedule:
    """What runs at one step, type by type; `step` are numbers from 0 on."""
    key = step.astype(np.int64) * len(graph.names) + graph.types
    order = np.argsort(key, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    return Schedule(order, np.append(starts, len(graph)), graph.types[order[starts]])


def _standard_sort(graph: TypedGraph) -> Schedule:
    """Runs each sample's nodes one after the other, depth first, all samples side by side."""
    user_indptr, _ = graph.successors
    return _by_steps(graph, sorting_loops.columns_of_rows(graph.indptr, graph.operands, user_indptr))


def _improved_sort(graph: TypedGraph) -> Schedule:
    """Runs the nodes of one type at one distance from the roots together, the farthest first."""
    label = topology.depths(*graph.successors, graph.topological[::-1].copy())
    return _by_steps(graph, label.max(initial=0) - label)


def _agenda(graph: TypedGraph) -> Schedule:
    """Runs the ready type of smallest average depth, taken once over all its nodes."""
    depth = topology.depths(graph.indptr, graph.operands, graph.topological)
    return Schedule(*loops.by_agenda(graph.columns(), depth, len(graph.names)))


def _critical_path(graph: TypedGraph) -> Schedule:
    """Runs the type with most work ahead of those ready types whose batch lowers the bound of what remains."""
    return Schedule(*loops.by_critical_path(graph.columns(), len(graph.names)))


def _sufficient(graph: TypedGraph) -> Schedule:
    """Runs the ready type of the largest ready share, of its nodes that wait for no other of their type on any path."""
    return Schedule(*loops.by_path_ratio(graph.columns(), len(graph.names)))


#: The rules by name. What `edbatch inspect` says of one is its docstring.
RULES: dict[str, Callable[[TypedGraph], Schedule]] = {
    "depth": _depth,
    "agenda": _agenda,
    "critical-path": _critical_path,
    "sufficient": _sufficient,
    "standard-sort": _standard_sort,
    "improved-sort": _improved_sort,
    "none": _none,
}
RUN_TIME_RULES = ("critical-path", "sufficient", "agenda", "depth")
