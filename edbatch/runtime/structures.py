"""What differs between graphs of one structure: the integers of their nodes, as words, labels and seeds of masks.

Neither batches nor rows depend on these, unless nodes that look up the same are made one. So the plan of one such graph
is that of all, but for places in its lists where integers are. They are found by planning once with a tag in place of
each: numbers that nothing else in a list is, which come through to wherever an integer is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import nodes_in, types_in
from edbatch.runtime.split_reasons import present, repeats

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


@compiled(small=True)
def integers_in(
    node_tables: np.ndarray, type_tables: np.ndarray, looks_up: np.ndarray, most_distinct: float
) -> tuple[bool, np.ndarray]:
    """Where in `args` the integers of nodes are; those of inputs, which number them, belong to the structure.

    Args:
        node_tables, type_tables: directories of the `NodeColumns` of a graph, and of the `TypeColumns`.
        looks_up, most_distinct: see `split_reasons.found_out`.

    Returns:
        Whether the plan is the same whatever they are; the places, or none.
    """
    nodes, types = nodes_in(node_tables), types_in(type_tables)
    kinds, _, _ = present(nodes.types, nodes.counts, looks_up)
    if len(kinds):
        asked = np.ones(len(kinds), np.bool_)
        if repeats(nodes, len(types.windows), kinds, asked, most_distinct).any():  # equal ones might be computed once
            return False, np.empty(0, np.int64)
    n = 0
    for node in range(len(nodes.types)):
        kind = nodes.types[node]
        if not types.is_source[kind]:
            n += types.payloads[kind]
    places = np.empty(n, np.int64)
    n = 0
    for node in range(len(nodes.types)):
        kind = nodes.types[node]
        if not types.is_source[kind]:
            for at in range(types.payloads[kind]):
                places[n] = nodes.starts[node] + nodes.counts[node] + at
                n += 1
    return True, places
