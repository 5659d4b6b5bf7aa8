"""More mini-batches to learn from than there are: the samples of those that are, drawn anew.

A table that is fitted to a few mini-batches knows who happened to meet whom in them. What is right for most of many
small mini-batches of the same samples, which meet others in each, is right for those to come as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from edbatch.base.later import Later
from edbatch.policy.typed_graph import TypedGraph

csgraph = Later("scipy.sparse.csgraph")
sparse = Later("scipy.sparse")

COUNT, PART, LEAST = 12, 4, 4  # mini-batches, of a fourth of the samples each, but at least so many
LEAST_SAMPLES = 8  # of a graph of which there are smaller ones


def drawn(graphs: Sequence[TypedGraph], random: np.random.Generator) -> Iterator[TypedGraph]:
    """Smaller mini-batches, of the samples of each graph in turn; none of one with few samples."""
    samples = [samples_of(graph) for graph in graphs]
    for number in range(COUNT):
        graph, of = graphs[number % len(graphs)], samples[number % len(graphs)]
        if len(of) >= LEAST_SAMPLES:
            yield joined(graph, [of[at] for at in random.choice(len(of), max(len(of) // PART, LEAST), replace=False)])


def samples_of(graph: TypedGraph) -> list[NDArray[np.intp]]:
    """The inner nodes of each sample: parts of the graph that no edge connects, in the order of their first nodes.

    Inner nodes have operands and users. Others are neither nodes of a part nor connections: samples may share
    parameters, and be added up in the end.

    Example:
        >>> graph = TypedGraph.from_lists(["p", "a", "a", "b", "b", "sum"], [[], [0], [0], [1], [2], [3, 4]])
        >>> [nodes.tolist() for nodes in samples_of(graph)]
        [[1, 3], [2, 4]]
    """
    inner, users = _inner(graph), _users(graph)
    among = inner[users] & inner[graph.operands]
    ends = users[among], graph.operands[among]
    edges = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(len(graph), len(graph)))
    _, part = csgraph.connected_components(edges, directed=False)
    nodes = np.flatnonzero(inner)
    nodes = nodes[np.argsort(part[nodes], kind="stable")]
    return np.split(nodes, np.flatnonzero(np.diff(part[nodes])) + 1) if len(nodes) else []


def joined(graph: TypedGraph, samples: Sequence[NDArray[np.intp]]) -> TypedGraph:
    """The mini-batch of some samples of a graph, with their first and last nodes, but none that need other samples.

    Example:
        >>> graph = TypedGraph.from_lists(["p", "a", "a", "b", "b", "sum"], [[], [0], [0], [1], [2], [3, 4]])
        >>> chosen = joined(graph, samples_of(graph)[1:])
        >>> [chosen.names[kind] for kind in chosen.types], chosen.operands.tolist()
        (['p', 'a', 'b'], [0, 1])
    """
    inner, users = _inner(graph), _users(graph)
    keep = np.zeros(len(graph), bool)
    keep[np.concatenate(samples)] = True
    needs = np.bincount(users[inner[graph.operands]], minlength=len(graph))
    has = np.bincount(users[keep[graph.operands]], minlength=len(graph))
    keep |= (needs == has) & (needs > 0)
    operands = graph.operands[keep[users]]
    keep[operands] = True  # those that are new have no operands themselves
    number = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    indptr = np.concatenate([[0], np.cumsum(np.diff(graph.indptr)[keep])])
    return TypedGraph(graph.types[keep], indptr, number[operands], graph.names)


def _inner(graph: TypedGraph) -> NDArray[np.bool_]:
    return (np.diff(graph.indptr) > 0) & (np.diff(graph.successors.indptr) > 0)


def _users(graph: TypedGraph) -> NDArray[np.intp]:
    """Of each edge."""
    return np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
