"""Policies that follow a fixed rule."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from edbatch.base.later import Later
from edbatch.errors import EdBatchError, shown
from edbatch.policy.policy_file import HeuristicFile, Training, write_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.typed_graph import Int32s, TypedGraph

loops = Later("edbatch.policy.heuristic_loops")
topology = Later("edbatch.policy.topology")


class Heuristic:
    """A policy that follows a rule and learns nothing.

    Its `meaning` says what the rule does, and `docs/batching.md` why: `depth` (TensorFlow Fold), `agenda` (DyNet),
    `critical-path` (the default), `sufficient` (section 5.3 of the paper), `standard-sort` and `improved-sort`
    (Suarez and Zhu 2019), and `none`.

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
        write_policy(path, HeuristicFile(self.name, self.training))


def _none(graph: TypedGraph) -> Schedule:
    """Runs every node alone."""
    order = graph.topological
    return Schedule(order, np.arange(len(graph) + 1), graph.types[order])


def _depth(graph: TypedGraph) -> Schedule:
    """Runs the nodes of one type at one depth together, depth by depth."""
    return _by_steps(graph, _depths(graph))


def _depths(graph: TypedGraph) -> Int32s:
    found: Int32s = topology.depths(graph.indptr, graph.operands, graph.topological)
    return found


def _by_steps(graph: TypedGraph, step: Int32s) -> Schedule:
    """What runs at one step, type by type; `step` are numbers from 0 on."""
    key = step.astype(np.int64) * len(graph.names) + graph.types
    order = np.argsort(key, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    return Schedule(order, np.append(starts, len(graph)), graph.types[order[starts]])


def _from_roots(graph: TypedGraph) -> Int32s:
    """int32[n]: the longest path to a root."""
    found: Int32s = topology.depths(*graph.successors, graph.topological[::-1].copy())
    return found


def _standard_sort(graph: TypedGraph) -> Schedule:
    """Runs each sample's nodes one after the other, depth first, all samples side by side."""
    label = _from_roots(graph)
    joins = int(np.argmin(np.append(np.bincount(label) == 1, False)))  # alone at their distance: the sum of losses, say
    column = topology.columns_of_rows(graph.indptr, graph.operands, label, joins)
    return _by_steps(graph, np.where(label < joins, column.max(initial=-1) + joins - label, column))


def _improved_sort(graph: TypedGraph) -> Schedule:
    """Runs the nodes of one type at one distance from the roots together, the farthest first."""
    label = _from_roots(graph)
    return _by_steps(graph, label.max(initial=0) - label)


def _agenda(graph: TypedGraph) -> Schedule:
    """Runs the ready type of smallest average depth, taken once over all its nodes."""
    types, kinds = graph.types, len(graph.names)
    number = np.maximum(np.bincount(types, minlength=kinds), 1)
    return Schedule(*loops.by_rank(graph.columns(), np.bincount(types, _depths(graph), kinds) / number))


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
