"""A data-flow graph as the policies see it: a type per node, and the operands of each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, shown

topology = LazyModule("edbatch.policy.topology")

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Columns = tuple[NDArray, ...]  # a record of columns, on its way from Python: Numba knows a plain tuple in less time


class Successors(NamedTuple):
    """Who uses each node: node v feeds `nodes[indptr[v]:indptr[v + 1]]`, once per use."""

    indptr: Int32s
    nodes: Int32s


class GraphColumns(NamedTuple):
    """A TypedGraph as compiled loops read it; without an order where they need none."""

    types: Int32s  # [n]
    indptr: Int64s  # [n + 1]
    operands: Int32s  # [m]
    user_indptr: Int32s  # [n + 1]
    users: Int32s  # [m]
    order: Int32s  # [n], topological


@dataclass(eq=False, repr=False)
class TypedGraph:
    """A typed directed acyclic graph in columns; the paper's dataflow graph G (section 2.1).

    Node v's operands are `operands[indptr[v]:indptr[v + 1]]`; one may occur twice, and have a larger id than its user.
    Building one checks nothing, because a run-time builds one per mini-batch; `checked` is for graphs from outside.

    Args:
        types: int32[n], for each node an index into `names`.
        indptr: int64[n + 1], starting with 0.
        operands: int32[m], node ids.
        names: the name of each type, by which policies know it in every process.
        ends: of a graph that ran in several runs, how many nodes there were after each but the last; see `runs`.

    Example:
        >>> graph = TypedGraph.from_lists(["leaf", "leaf", "sum"], [[], [], [0, 1]])
        >>> len(graph), graph.names, graph.types.tolist(), graph.operands.tolist()
        (3, ('leaf', 'sum'), [0, 0, 1], [0, 1])
        >>> graph.successors.nodes.tolist()
        [2, 2]
    """

    types: Int32s
    indptr: Int64s
    operands: Int32s
    names: tuple[str, ...]
    ends: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return f"TypedGraph({len(self)} nodes, {len(self.operands)} edges, {len(self.names)} types)"

    @classmethod
    def checked(
        cls, types: Iterable[int], indptr: Iterable[int], operands: Iterable[int], names: Sequence[str],
        ends: Sequence[int] = (),
    ) -> Self:  # fmt: skip
        """A graph of such columns.

        Raises:
            EdBatchError: a column of other than integers or of the wrong length, an id out of range, a name that occurs
                twice or is no text, a cycle, or a run that needs a later one; the message names the nodes.
        """
        columns = _integers("types", types), _integers("indptr", indptr, np.int64), _integers("operands", operands)
        if not _are(names, str):
            raise EdBatchError("names: expected the name of each type")
        graph = cls(*columns, tuple(names), tuple(_integers("ends", ends, np.int64).tolist()))
        graph._check()
        return graph

    @classmethod
    def from_lists(cls, types: Sequence[str], operands: Sequence[Sequence[int]]) -> Self:
        """A checked graph from one type name and one operand list per node.

        Raises:
            EdBatchError: other than texts and lists of node ids, one of each per node; and as of `checked`.
        """
        if not (_are(types, str) and _are(operands, _LISTS) and len(types) == len(operands)):
            raise EdBatchError("from_lists: expected the name of a type and a list of operands for each node")
        names = tuple(dict.fromkeys(types))
        number = {name: index for index, name in enumerate(names)}
        indptr = np.cumsum([0, *map(len, operands)])
        return cls.checked([number[name] for name in types], indptr, [node for row in operands for node in row], names)

    @cached_property
    def successors(self) -> Successors:
        """The users of every node, computed at first use."""
        return Successors(*topology.successors(self.indptr, self.operands))

    def runs(self) -> list[TypedGraph]:
        """What was scheduled at a time: the graph itself, or the nodes of each run, without what had run before."""
        runs = pairwise([0, *self.ends, len(self)])
        return [self._run(begin, end) for begin, end in runs if begin < end] if self.ends else [self]

    def _run(self, begin: int, end: int) -> TypedGraph:
        """Nodes `begin` to `end`, with those types alone that they have."""
        at = self.indptr[begin : end + 1]
        operands = self.operands[at[0] : at[-1]]
        own = operands >= begin
        before = np.concatenate([[0], np.cumsum(own)])
        present, types = np.unique(self.types[begin:end], return_inverse=True)
        names = tuple(self.names[kind] for kind in present.tolist())
        return TypedGraph(types.astype(np.int32), before[at - at[0]], operands[own] - np.int32(begin), names)

    def columns(self) -> Columns:
        """The `GraphColumns`."""
        users = self.successors
        return self.types, self.indptr, self.operands, users.indptr, users.nodes, self.topological

    @cached_property
    def topological(self) -> Int32s:
        """int32[n]: operands before their users, by id where that will do; an EdBatchError where there is a cycle."""
        nodes = np.arange(len(self), dtype=np.int32)
        if (self.operands < np.repeat(nodes, np.diff(self.indptr))).all():
            return nodes
        rows = np.split(self.operands, self.indptr[1:-1])
        sorter = TopologicalSorter({node: row.tolist() for node, row in enumerate(rows)})
        try:
            return np.fromiter(sorter.static_order(), np.int32, len(self))
        except CycleError as error:
            loop = error.args[1]
            way = map(str, loop if len(loop) <= 9 else [*loop[:4], "...", *loop[-4:]])
            raise EdBatchError(f"the graph has a cycle through node {' -> '.join(way)}") from None

    def _check(self) -> None:
        nodes, names, indptr = len(self), self.names, self.indptr
        if len(indptr) != nodes + 1 or indptr[0] != 0 or indptr[-1] != len(self.operands):
            has = f"{len(indptr)}: {indptr[:1].tolist()}..{indptr[-1:].tolist()}"
            raise EdBatchError(f"indptr must have {nodes + 1} entries from 0 to {len(self.operands)}, has {has}")
        if (node := _first(np.diff(indptr) < 0)) is not None:
            raise EdBatchError(f"node {node}: indptr falls there")
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise EdBatchError(f"two types are named {twice[0]!r}")
        if (node := _first((self.types < 0) | (self.types >= len(names)))) is not None:
            raise EdBatchError(f"node {node}: type {self.types[node]}, but there are {len(names)} names")
        users = np.repeat(np.arange(nodes), np.diff(indptr))
        if (edge := _first((self.operands < 0) | (self.operands >= nodes))) is not None:
            raise EdBatchError(f"node {users[edge]}: operand {self.operands[edge]}, but there are {nodes} nodes")
        _ = self.topological
        bounds = [0, *self.ends, nodes]
        if bounds != sorted(bounds):
            raise EdBatchError(f"runs end after {self.ends} nodes: expected these to ascend, up to {nodes}")
        run_of = np.searchsorted(self.ends, np.arange(nodes), side="right")
        if (edge := _first(run_of[users] < run_of[self.operands])) is not None:
            raise EdBatchError(f"node {users[edge]}: operand {self.operands[edge]} is of a later run")


def _first(wrong: NDArray[np.bool_]) -> int | None:
    return int(wrong.argmax()) if wrong.any() else None


def _integers(column: str, given: Iterable[int], dtype: type[np.signedinteger] = np.int32) -> NDArray[Any]:
    """A column of a graph from outside; a conversion alone would cut off fractions and high bits."""
    try:
        found = np.asarray(given).reshape(-1)
    except ValueError as error:  # lists in lists, of several lengths or without an end
        raise EdBatchError(f"{column}: expected integers, got lists in lists ({error})") from None
    limits = np.iinfo(dtype)
    if found.size and found.dtype.kind not in "iu":
        raise EdBatchError(f"{column}: expected integers, got {found[0]} of {found.dtype}")
    if found.size and (found.min() < limits.min or found.max() > limits.max):
        raise EdBatchError(f"{column}: expected integers from {limits.min} to {limits.max}, got {found.max()}")
    return found.astype(dtype)


def require_typed_graph(what: str, graph: object) -> None:
    """Refuse what is no TypedGraph, an `eb.Graph` above all: an EdBatchError that names the cure."""
    if not isinstance(graph, TypedGraph):
        raise EdBatchError(f"{what}: expected a TypedGraph (graph.typed_graph()), got {shown(graph)}")


def lower_bound(graph: TypedGraph) -> int:
    """The sum over types of the most nodes of the type on any one path: no schedule of `graph` has fewer batches.

    It is equation (2) of the paper's appendix A.3.

    Raises:
        EdBatchError: the graph has a cycle, or is no TypedGraph.

    Example:
        >>> lower_bound(TypedGraph.from_lists(["a", "b", "a"], [[], [0], [1]]))
        3
    """
    require_typed_graph("lower_bound", graph)
    return int(topology.path_bound(graph.types, graph.indptr, graph.operands, graph.topological, len(graph.names)))


_LISTS = (Sequence, np.ndarray)


def _are(found: Any, kind: Any) -> bool:
    is_list = isinstance(found, _LISTS) and getattr(found, "ndim", 1) > 0
    return is_list and all(isinstance(one, kind) for one in found)
