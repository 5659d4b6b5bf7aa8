"""Equal nodes once: of nodes of one type with equal operands and integers the first is computed, and stands for all.

It is decided before cells are split, in the order of recording: what a node reads is replaced by what stands for it,
and the node is then looked up by its type and all its integers, compared exactly. So equal subgraphs are one from their
leaves up. What a random op draws is among the integers, and the code of a view says whether gradient flows, so neither
needs a rule of its own. Inputs are numbered anew in each run, and no sources are looked up.

A node that another stands for stays where it is, as a source that nobody reads, so that all ids are what they were.
Nodes are kept as they were recorded as well: to compare, and for gradients of one of several that are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edbatch.graph.model.exchange import any_exported
from edbatch.graph.model.writes import now
from edbatch.graph.node_type import intern
from edbatch.graph.op import Kind, Op
from edbatch.graph.sources import INPUT
from edbatch.graph.spec import spec_of
from edbatch.graph.views import NODE_MASK
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.sharing_loops import NONE, enter, share_nodes

if TYPE_CHECKING:
    from edbatch.runtime.type_table import TypeTable

FEWEST = 1024  # places of a table


def _no_shape(*_: object) -> tuple[int, ...]:
    raise AssertionError("the result spec of a source is given, not inferred")


#: What becomes of a node that another stands for: it has a place for one number, which nobody fills in or reads.
STOOD_FOR = intern(
    Op("shared", _no_shape, lambda k, out, values: None, Kind.SOURCE), (), (), spec_of((), np.dtype("float32"))
)


class Recorded(Nodes):
    """Nodes as they were recorded, with operands that are not replaced; parts of cells that were split are none.

    Attributes:
        types: as of `Nodes`; `NONE` of parts.
        starts, counts, args: as of `Nodes`, in integers of its own.
        stands: the node that stands for each; most stand for themselves.
        hashes: of type and integers.
    """

    PER_NODE = ("types", "starts", "counts", "stands", "hashes")
    stands: np.ndarray
    hashes: np.ndarray


class Alone(NamedTuple):
    """All that was recorded, as one graph.

    Attributes:
        types, args: see `graph.columns.Columns`; inputs are numbered in their order.
        places: per node of the old graph, its id in the new one; `NONE` of parts.
        inputs: those of the old graph.
    """

    types: np.ndarray
    args: np.ndarray
    places: np.ndarray
    inputs: np.ndarray


class Sharing:
    """Which nodes of a graph stand for which.

    Args:
        types: of the graph.

    Attributes:
        recorded: all nodes that `share` has seen.
    """

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self._gone = int(types.number(np.array([STOOD_FOR.id]))[0])
        self.recorded = Recorded()
        self._begin = 0  # nodes before it read parameters that were written to since
        self._time = 0
        self._room = np.empty(0, np.int32)
        self._places = self._room  # a hash table of nodes

    def clear(self) -> None:
        """Have no nodes, and the same room."""
        self.recorded.clear()
        self._begin, self._places = 0, self._room[:0]

    @property
    def bytes(self) -> int:
        """Of all columns, with their room."""
        return self.recorded.bytes + self._room.nbytes

    def share(self, nodes: Nodes, first: int, base: int) -> None:
        """Have nodes computed once that are equal to one another, or to some that have run.

        Args:
            nodes: of the graph; of those from `first` on, operands and types are replaced.
            base: where in `args` theirs begin.
        """
        seen = self.recorded.n
        self.recorded.reserve(nodes.n - seen, nodes.n_args - base)
        types, recorded, time = self._types.directory, self.recorded.directory, now()
        if time != self._time or any_exported():
            self._time, self._begin, self._places = time, first, self._room[:0]
        room = 2 * (nodes.n - self._begin)
        if room > len(self._places):
            size = max(FEWEST, 1 << (room - 1).bit_length())
            if size > len(self._room):
                self._room = np.empty(size, np.int32)
            self._places = self._room[:size]
            self._places.fill(NONE)
            if self._begin < seen:
                enter(self._begin, seen, types, recorded, self._places)
        share_nodes(seen, first, base, self._gone, nodes.directory, types, recorded, self._places)

    def stands_for(self, id: int) -> int:
        """The id of what is computed for an expression."""
        node = id & NODE_MASK
        return id - node + self.recorded.stands.item(node) if node < self.recorded.n else id

    def stand_for(self, ids: np.ndarray) -> np.ndarray:
        """The same of several that were seen."""
        nodes = ids & NODE_MASK
        return ids - nodes + self.recorded.stands[nodes]

    def is_one_of_several(self, trail: tuple[int, ...]) -> bool:
        """Whether an expression that is found by these nodes is computed for others as well.

        It is that of the last of them that was recorded: what follows are parts into which that one was split.
        """
        types, stands = self.recorded.types[: self.recorded.n], self.recorded.stands[: self.recorded.n]
        node = next(node for node in reversed(trail) if node < len(types) and types.item(node) != NONE)
        return int(np.count_nonzero(stands == node)) > 1

    def counts(self, end: int) -> dict[str, int]:
        """By name of the type, how many of the nodes before `end` were not computed."""
        recorded, n = self.recorded, min(end, self.recorded.n)
        gone = recorded.types[:n][recorded.stands[:n] != np.arange(n)]
        found: dict[str, int] = {}
        for kind, times in zip(*(column.tolist() for column in np.unique(gone, return_counts=True)), strict=True):
            name = self._types.bound[kind].type.name
            found[name] = found.get(name, 0) + times
        return found

    def alone(self) -> Alone:
        """All that was recorded, as a graph of its own."""
        recorded, n = self.recorded, self.recorded.n
        types, args = recorded.types[:n], recorded.args[: recorded.n_args].copy()
        is_node = types != NONE
        places = np.where(is_node, np.cumsum(is_node) - 1, NONE)
        starts, counts = recorded.starts[:n][is_node], recorded.counts[:n][is_node]
        ends = np.cumsum(counts)
        operands = np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
        args[operands] += places[args[operands] & NODE_MASK] - (args[operands] & NODE_MASK)
        bound = [one.type for one in self._types.bound]
        is_input = np.array([type.op is INPUT for type in bound])
        inputs = np.flatnonzero(is_node & is_input[types])
        args[recorded.starts[inputs]] = np.arange(len(inputs))
        return Alone(np.array([type.id for type in bound], np.int32)[types[is_node]], args, places, inputs)

    def restore(self, kept: Nodes) -> None:
        """Have what another graph that recorded the same has found."""
        self.recorded.put(kept)
        self._time = now()

    def copy(self) -> Sharing:
        """The same for another copy of the nodes."""
        made = Sharing(self._types)
        made.recorded, made._places = self.recorded.copy(), self._places.copy()
        made._begin, made._time = self._begin, self._time
        return made
