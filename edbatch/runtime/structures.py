"""What differs between graphs of one structure: the integers of their nodes, as words, labels and seeds of masks.

Neither batches nor rows depend on these, unless nodes that look up the same are made one. So the plan of one such graph
is that of all, but for places in its lists where integers are. They are found by planning once with a tag in place of
each: numbers that nothing else in a list is, which come through to wherever an integer is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.runtime.nodes import Nodes
from edbatch.runtime.split import MOST_DISTINCT
from edbatch.runtime.type_columns import ColumnsOfTypes

_FIRST = -2  # tags are this and what is less; lists hold no other number below -1


class Places(NamedTuple):
    """Where in a list integers of nodes are.

    Attributes:
        at: the places.
        of: per place, the number of the integer.
    """

    at: np.ndarray
    of: np.ndarray

    def put(self, listed: np.ndarray, values: np.ndarray) -> None:
        """Have these integers there."""
        listed[self.at] = values[self.of]

    def tag(self, listed: np.ndarray) -> None:
        """Have tags there."""
        listed[self.at] = _FIRST - self.of


class Integers(NamedTuple):
    """Where those of a graph are in its records once it is planned.

    Attributes:
        in_nodes: among the nodes' own.
        in_plan: among the indices of the plan.
    """

    in_nodes: Places
    in_plan: Places


def places_of_all(at: np.ndarray) -> Places:
    """All integers, at these places."""
    return Places(at, np.arange(len(at)))


def tagged_in(listed: np.ndarray) -> Places:
    """Where tags have come to be in a list."""
    (at,) = (listed <= _FIRST).nonzero()
    return Places(at, _FIRST - listed[at])


def integers_in(nodes: Nodes, columns: ColumnsOfTypes) -> np.ndarray | None:
    """Where in `args` the integers of nodes are; those of inputs, which number them, belong to the structure.

    Args:
        nodes: of a graph, as they were recorded.
        columns: of their types.

    Returns:
        The places; None: the plan may follow from integers, as there is a cell of which equal look-ups may be shared.
    """
    types, args = nodes.types[: nodes.n], nodes.args
    counts = columns.integers[types]
    (at,) = counts.nonzero()
    places: np.ndarray = nodes.starts[at] + nodes.counts[at]
    if columns.any_looks_up:
        kinds = types[at]
        for kind in np.unique(kinds[columns.looks_up[kinds]]).tolist():
            found = args[places[kinds == kind]]
            if len(np.unique(found)) <= MOST_DISTINCT * len(found):
                return None
    counts = counts[at]
    if len(counts) and counts.max() > 1:
        begins = np.cumsum(counts) - counts
        places = np.repeat(places - begins, counts) + np.arange(counts.sum())
    return places
