"""Advice about totals that grow by one operand at a time, where one function of a list would do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edbatch.policy.typed_graph import TypedGraph
from edbatch.runtime.advice_types import LEAST, gain_of

_OF_LISTS = {"add": "eb.sum", "maximum": "eb.max", "minimum": "eb.min"}
_GROWING = re.compile(rf"({'|'.join(_OF_LISTS)})\((\[[\d,]*\]), \2\)")  # of two operands of one shape


class _Joined(NamedTuple):
    """A graph as it would be if each total were computed by one node.

    Attributes:
        graph: this graph.
        longest, name: how many nodes the longest total takes, and their type.
    """

    graph: TypedGraph
    longest: int = 0
    name: str = ""


def put_together_one_by_one(graphs: Sequence[TypedGraph]) -> list[str]:
    """Totals, each of whose nodes waits for the one before."""
    joined = [_joined(graph) for graph in graphs]
    gain = gain_of(graphs, [one.graph for one in joined])
    if gain is None:
        return []
    _, longest, name = max(joined, key=lambda one: one.longest)
    function = _OF_LISTS[name.partition("(")[0]]
    return [
        f"A total grows by one operand at a time: {longest:,} nodes {name} in a row, each a batch. Were it {function} "
        f"of a list, {gain}. Collect the operands (losses, say) in a list, and write total = {function}(list) once."
    ]


def _joined(graph: TypedGraph) -> _Joined:
    """Have one node for all of a total: for nodes of one type, each an operand of the next and of nothing else."""
    n = len(graph)
    grows = np.array([_GROWING.fullmatch(name) is not None for name in graph.names], bool)
    if not grows.any():
        return _Joined(graph)
    types, operands = graph.types, graph.operands
    users = np.repeat(np.arange(n), np.diff(graph.indptr))
    only = np.bincount(operands, minlength=n)[operands] == 1
    joins = only & grows[types[users]] & (types[operands] == types[users])
    last = np.arange(n)  # of the total that a node is part of
    last[operands[joins]] = users[joins]
    while (last != last[last]).any():
        last = last[last]
    sizes = np.bincount(last, minlength=n)
    if sizes.max(initial=0) < LEAST:
        return _Joined(graph)
    last = np.where(sizes[last] >= LEAST, last, np.arange(n))
    kept = np.flatnonzero(last == np.arange(n))
    numbers = np.cumsum(last == np.arange(n)) - 1
    outer = last[users] != last[operands]
    users, operands = numbers[last[users[outer]]], numbers[last[operands[outer]]].astype(np.int32)
    order = np.argsort(users, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=len(kept)))])
    of_list = np.where(sizes[kept] >= LEAST, types[kept] + len(graph.names), types[kept]).astype(np.int32)
    longest = int(sizes.argmax())
    names = (*graph.names, *(f"{name} of a list" for name in graph.names))
    made = TypedGraph(of_list, indptr.astype(np.int64), operands[order], names)
    return _Joined(made, int(sizes[longest]), graph.names[types[longest]])
