"""Nodes that were recorded before a parameter changed and had not run: their values would be those of another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edbatch.graph.node_type import NodeType
from edbatch.graph.views import NODE_MASK
from edbatch.runtime.evaluation import Evaluation


def outdated_nodes(
    evaluation: Evaluation, marks: Sequence[tuple[int, int]], before: Mapping[int, str]
) -> dict[int, str]:
    """Of the nodes that run next, those that read, or depend on, a parameter that has changed since they were recorded.

    Args:
        marks: how many nodes had been recorded when parameters were written to, and when that was.
        before: those that have run.

    Returns:
        By node the names of the parameters.
    """
    nodes, bound = evaluation.nodes, evaluation.table.bound
    found: dict[int, str] = {}
    begin = evaluation.done
    for end, time in marks:
        kinds = nodes.types[begin:end]
        for kind in np.unique(kinds).tolist():
            names = _written(bound[kind].type, time)
            if names:
                found.update(dict.fromkeys((begin + np.flatnonzero(kinds == kind)).tolist(), names))
        begin = end
    if not found and not before:
        return found
    known = {**before, **found}
    for node in range(evaluation.done, nodes.n):
        at = nodes.starts.item(node)
        for operand in (nodes.args[at : at + nodes.counts.item(node)] & NODE_MASK).tolist():
            if operand in known and node not in known:
                known[node] = found[node] = known[operand]
    return found


def _written(type: NodeType, since: int) -> str:
    """The names of the parameters of a type that were written to at a time or later."""
    read = [parameter for spec in type.parameters if (parameter := spec.parameter()) is not None]
    members = (member for parameter in read for member in parameter.members())
    return ", ".join(dict.fromkeys(member.name for member in members if member.written >= since))
