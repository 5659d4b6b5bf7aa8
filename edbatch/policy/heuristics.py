"""Policies that follow a fixed rule: the run-time heuristics and the off-line searches."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from edbatch.base.later import Later
from edbatch.errors import EdBatchError, shown
from edbatch.policy.bounds import lower_bound
from edbatch.policy.policy_file import VERSION, HeuristicFile, write_policy
from edbatch.policy.schedule import Schedule
from edbatch.policy.training import Training
from edbatch.policy.typed_graph import TypedGraph

loops = Later("edbatch.policy.heuristic_loops")
search_loops = Later("edbatch.policy.search_loops")
sorting_loops = Later("edbatch.policy.sorting_loops")
topology = Later("edbatch.policy.topology")

BEAM_WIDTH = 10


class Heuristic:
    """A policy that follows a rule and learns nothing.

    - `depth`: nodes of one type at one topological depth (TensorFlow Fold).
    - `agenda`: the ready type of smallest average depth, averaged once over all its nodes (DyNet).
    - `agenda-remaining`: the same, averaged over the nodes that remain (ED-Batch's version of it).
    - `critical-path`: of the ready types whose batch lowers the bound of what remains, the one with most work ahead;
      the default. Not in the paper: `docs/batching.md` has the argument.
    - `sufficient`: the ready type of largest ratio |READY| / |TOTAL|, path reading (section 5.3).
    - `sufficient-direct`: the same with the direct reading, as the paper computes it.
    - `standard-sort`: each sample as a row of nodes, depth first; nodes of one type in one column (Suarez and Zhu
      2019, "standard topological sort").
    - `improved-sort`: nodes of one type at one distance from the roots, the farthest first (Suarez and Zhu 2019,
      "improved topological sort"); `depth` counts from the inputs.
    - `none`: each node alone.
    - `greedy`, `beam`, `beam:WIDTH`: searches on the lower bound of what remains; meant for off-line use.

    Args:
        name: one of these names.
        training: set by `learn` when this rule beat everything that could be learned.

    Raises:
        EdBatchError: unknown name.

    Example:
        >>> graph = TypedGraph.from_lists(["a", "b", "a"], [[], [0], []])
        >>> [len(Heuristic(name).schedule(graph)) for name in ("none", "depth", "beam:4")]
        [3, 2, 2]
    """

    def __init__(self, name: str, training: Training | None = None) -> None:
        _rule(name)  # there is one
        self.name = name
        self.training = training

    def __repr__(self) -> str:
        return f"Heuristic({self.name!r})"

    @property
    def meaning(self) -> str:
        """What the rule does, as a sentence without its subject: what its docstring says."""
        said = " ".join((RULES[self.name.partition(":")[0]].__doc__ or "Says nothing of itself.").split())
        return said[0].lower() + said[1:].removesuffix(".")

    def schedule(self, graph: TypedGraph) -> Schedule:
        """The batches of `graph`; it must have no cycle."""
        return _rule(self.name)(graph)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file that names this rule."""
        write_policy(path, HeuristicFile(VERSION, "heuristic", self.name, self.training))


def _rule(name: str) -> Callable[[TypedGraph], Schedule]:
    if name in RULES:
        return RULES[name]
    head, colon, width = name.partition(":")
    if head == "beam" and colon:
        if not width.isdecimal() or not 0 < len(width) < 10 or int(width) < 1:
            raise EdBatchError(f"policy {shown(name)}: the width must be a positive integer, as in 'beam:10'")
        return lambda graph: _beam(graph, int(width))
    raise EdBatchError(f"no policy is named {shown(name)}; there are {', '.join(RULES)} and beam:WIDTH")


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
    label = sorting_loops.labels_from_roots(graph.indptr, graph.operands, graph.topological)
    return _by_steps(graph, label.max(initial=0) - label)


def _agenda(graph: TypedGraph) -> Schedule:
    """Runs the ready type of smallest average depth, taken once over all its nodes."""
    return _by_agenda(graph, only_remaining=False)


def _agenda_remaining(graph: TypedGraph) -> Schedule:
    """Runs the ready type of smallest average depth, taken over its nodes that remain."""
    return _by_agenda(graph, only_remaining=True)


def _by_agenda(graph: TypedGraph, only_remaining: bool) -> Schedule:
    depth = topology.depths(graph.indptr, graph.operands, graph.topological)
    return Schedule(*loops.by_agenda(graph.columns(), depth, len(graph.names), only_remaining))


def _critical_path(graph: TypedGraph) -> Schedule:
    """Runs the type with most work ahead of those ready types whose batch lowers the bound of what remains."""
    return Schedule(*loops.by_critical_path(graph.columns(), len(graph.names)))


def _sufficient(graph: TypedGraph) -> Schedule:
    """Runs the ready type of the largest ready share, of its nodes that wait for no other of their type on any path."""
    return Schedule(*loops.by_path_ratio(graph.columns(), len(graph.names)))


def _sufficient_direct(graph: TypedGraph) -> Schedule:
    """Runs the ready type of the largest ready share, of its nodes that wait for no other of their type directly."""
    return Schedule(*loops.by_direct_ratio(graph.columns(), len(graph.names)))


def _greedy(graph: TypedGraph) -> Schedule:
    """Runs the type that leaves the smallest lower bound; a search, for off-line use."""
    return Schedule(*loops.by_bound(graph.columns(), len(graph.names)))


def _beam(graph: TypedGraph, width: int = BEAM_WIDTH) -> Schedule:
    """Keeps the best partial schedules by the lower bound of what remains; a search, for off-line use."""
    greedy = _greedy(graph)
    if len(greedy) == lower_bound(graph):
        return greedy
    columns = graph.columns()
    code = np.random.default_rng(0).integers(1 << 62, size=len(graph))
    sequence = search_loops.beam_search(columns, len(graph.names), width, code)
    if len(sequence) >= len(greedy):
        return greedy
    return Schedule(*search_loops.replay(columns, len(graph.names), sequence))


#: The rules by name. What `edbatch inspect` says of one is its docstring.
RULES: dict[str, Callable[[TypedGraph], Schedule]] = {
    "depth": _depth,
    "agenda": _agenda,
    "agenda-remaining": _agenda_remaining,
    "critical-path": _critical_path,
    "sufficient": _sufficient,
    "sufficient-direct": _sufficient_direct,
    "standard-sort": _standard_sort,
    "improved-sort": _improved_sort,
    "none": _none,
    "greedy": _greedy,
    "beam": _beam,
}
RUN_TIME_RULES = ("depth", "agenda", "agenda-remaining", "critical-path", "sufficient", "sufficient-direct")
