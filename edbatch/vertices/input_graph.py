"""Input graphs: which vertices there are, and whose results each gathers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, missing_memory, shown

loops: Any = LazyModule("edbatch.vertices.loops")

_NOTHING = np.empty(0, np.int64)


class InputGraph:
    """The structure that vertex functions run over, of one sample or of a whole mini-batch: a DAG, as arrays.

    Vertices are numbered from 0, in any order. What a vertex gathers are the results of its children: of a word, those
    of the word before; of a node of a tree, those below it.

    Args:
        offsets: [n + 1] integers: the children of vertex v are `children[offsets[v]:offsets[v + 1]]`.
        children: their numbers, in the order in which they are gathered; a vertex may be a child of several, or several
            times of one.
        kinds: [n] integers: which of several vertex functions each takes; 0 by default.

    Raises:
        EdBatchError: a number is out of range, or vertices gather one another in a circle; the vertices are named.

    Example:
        >>> import edbatch as eb
        >>> graph = eb.InputGraph([0, 0, 0, 2], [0, 1])  # a tree: two words, and what is over them
        >>> len(graph), graph.roots
        (3, array([2]))
        >>> eb.InputGraph([0, 1, 2], [1, 0])
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: InputGraph: vertex 0 gathers 1 gathers 0: expected no cycle
    """

    def __init__(self, offsets: Any, children: Any, kinds: Any = None) -> None:
        self._offsets = _integers("offsets", offsets)
        self._children = _integers("children", children)
        n = len(self._offsets) - 1
        if n < 0 or self._offsets[0] != 0 or self._offsets[n] != len(self._children):
            raise EdBatchError(
                f"InputGraph: expected offsets from 0 to the number of children, {len(self._children)}, got "
                f"{shown(offsets)}"
            )
        self._kinds = np.zeros(n, np.int64) if kinds is None else _integers("kinds", kinds)
        if len(self._kinds) != n or (n and self._kinds.min() < 0):
            raise EdBatchError(
                f"InputGraph: expected a kind of at least 0 for each of {n} vertices, got {shown(kinds)}"
            )
        counts, of = np.diff(self._offsets), len(self._children)
        if (vertex := _first((counts < 0) | (self._offsets[1:] > of))) >= 0:
            first, end = self._offsets[vertex : vertex + 2].tolist()
            raise EdBatchError(f"InputGraph: vertex {vertex} has children from {first} to {end} of {of}")
        if (at := _first((self._children < 0) | (self._children >= n))) >= 0:
            vertex, child = int(self._offsets.searchsorted(at, "right")) - 1, self._children[at]
            raise EdBatchError(
                f"InputGraph: child {at - self._offsets[vertex]} of vertex {vertex} is {child}, out of range for {n} "
                "vertices"
            )
        self._order = _NOTHING
        if (self._children >= np.arange(n).repeat(counts)).any():
            self._order, path = loops.depth_first(self._offsets, self._children)
            if len(path):
                way = " gathers ".join([*map(str, path[:8].tolist()), *["..."] * (len(path) > 8)])
                raise EdBatchError(f"InputGraph: vertex {way}: expected no cycle")
        self._ranks: tuple[np.ndarray, np.ndarray] = _NOTHING, _NOTHING

    def __len__(self) -> int:
        """The number of vertices."""
        return len(self._offsets) - 1

    def __repr__(self) -> str:
        return f"InputGraph({len(self)} vertices, {len(self._children)} edges)"

    @property
    def offsets(self) -> np.ndarray:
        """Where the children of each vertex begin, and where those of the last end (a copy)."""
        return self._offsets.copy()

    @property
    def children(self) -> np.ndarray:
        """The children of all vertices, one after the other (a copy)."""
        return self._children.copy()

    @property
    def kinds(self) -> np.ndarray:
        """Which of several vertex functions each vertex takes (a copy)."""
        return self._kinds.copy()

    @property
    def roots(self) -> np.ndarray:
        """The vertices that no other gathers, in their order: of trees one each."""
        is_root = np.ones(len(self), np.bool_)
        is_root[self._children] = False
        return np.flatnonzero(is_root)

    @property
    def _structure(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As loops take it."""
        return self._order, self._offsets, self._children

    def _children_of(self, vertex: int) -> list[int]:
        """The children of a vertex."""
        return self._children[self._offsets[vertex] : self._offsets[vertex + 1]].tolist()

    def _ranked(self, kinds: int) -> tuple[np.ndarray, np.ndarray]:
        """How many vertices there are of each kind; per vertex how many of its kind come before it."""
        if len(self._ranks[0]) != kinds:
            if (vertex := _first(self._kinds >= kinds)) >= 0:
                raise EdBatchError(
                    f"vertex {vertex} is of kind {self._kinds[vertex]}: expected one below {kinds}, the number of "
                    "vertex functions"
                )
            ranks = np.empty(len(self), np.int64)
            for kind in range(kinds):
                (vertices,) = (self._kinds == kind).nonzero()
                ranks[vertices] = np.arange(len(vertices))
            self._ranks = np.bincount(self._kinds, minlength=kinds), ranks
        return self._ranks

    @classmethod
    def of_lists(cls, samples: Iterable[Sequence[Sequence[int]]], kinds: Any = None) -> InputGraph:
        """Of several samples, each as a list of its vertices' children, numbered within the sample.

        Args:
            samples: per sample and vertex the numbers of its children, as `edbatch.data.Tree.children` are.
            kinds: per vertex of all samples; see the class.

        Raises:
            EdBatchError: these are no lists of integers, or one is out of range; the vertex is named.

        Example:
            >>> import edbatch as eb
            >>> eb.InputGraph.of_lists([[(), (), (0, 1)], [(), (0,)]]).children
            array([0, 1, 3])
        """
        try:
            listed = [[list(children) for children in sample] for sample in samples]
        except TypeError as error:
            raise EdBatchError(
                "InputGraph.of_lists: expected samples, each a list that has the children of every vertex as a list, "
                f"got {shown(samples)} ({error})"
            ) from error
        begins = accumulate((len(sample) for sample in listed), initial=0)
        lists = []
        for number, (sample, begin) in enumerate(zip(listed, begins, strict=False)):
            for vertex, children in enumerate(sample):
                if not all(isinstance(child, int | np.integer) and 0 <= child < len(sample) for child in children):
                    raise EdBatchError(
                        f"InputGraph.of_lists: vertex {vertex} of sample {number} has children {shown(children)}: "
                        f"expected integers in [0, {len(sample)}), the range of its vertices"
                    )
                lists.append([begin + child for child in children])
        return cls(_offsets_of(map(len, lists)), list(chain.from_iterable(lists)), kinds)

    @classmethod
    def of_chains(cls, lengths: Any) -> InputGraph:
        """Of sequences: a vertex is the only child of the next one.

        Args:
            lengths: of each sequence, at least 1.

        Raises:
            EdBatchError: one is shorter, or there is no memory for so many vertices (also a `MemoryError`).

        Example:
            >>> import edbatch as eb
            >>> graph = eb.InputGraph.of_chains([3, 2])
            >>> graph.children, graph.roots
            (array([0, 1, 3]), array([2, 4]))
        """
        counts = _integers("of_chains: lengths", lengths)
        if len(counts) and counts.min() < 1:
            raise EdBatchError(f"InputGraph.of_chains: expected lengths of at least 1, got {shown(lengths)}")
        n = sum(counts.tolist())
        try:
            has_one = np.ones(n, np.int64)
        except (MemoryError, ValueError):
            raise missing_memory("InputGraph.of_chains", lengths) from None
        ends = np.cumsum(counts)
        has_one[ends - counts] = 0
        return cls(_offsets_of(has_one), np.flatnonzero(has_one) - 1)

    @classmethod
    def of_tuples(cls, samples: Iterable[Any]) -> tuple[InputGraph, list[Any]]:
        """Of trees as nested tuples: what is no tuple is a leaf, of kind 0; a tuple is of kind 1, over its parts.

        Vertices are numbered as a recursive function computes them: parts before what they are part of, in order.

        Returns:
            The graph, and all leaves in order, as inputs of the vertices of kind 0.

        Raises:
            EdBatchError: a tuple is empty, or trees are not listed.

        Example:
            >>> import edbatch as eb
            >>> graph, words = eb.InputGraph.of_tuples([((3, 7), 5), 4])
            >>> graph.kinds, words
            (array([0, 0, 1, 0, 1, 0]), [3, 7, 5, 4])
        """
        leaves: list[Any] = []
        lists: list[list[int]] = []
        for sample in _given("of_tuples", "trees", samples):
            waiting, done = [(sample, False)], list[int]()  # parts, and whether theirs are done; their vertices
            while waiting:
                part, is_over = waiting.pop()
                if isinstance(part, tuple) and not part:
                    raise EdBatchError(f"InputGraph.of_tuples: an empty tuple in {shown(sample)}")
                if isinstance(part, tuple) and not is_over:
                    waiting += [(part, True), *((one, False) for one in reversed(part))]
                    continue
                if isinstance(part, tuple):
                    lists.append(done[-len(part) :])
                    del done[-len(part) :]
                else:
                    leaves.append(part)
                    lists.append([])
                done.append(len(lists) - 1)
        kinds = np.array([bool(one) for one in lists], np.int64)
        return cls(_offsets_of(map(len, lists)), list(chain.from_iterable(lists)), kinds), leaves

    @classmethod
    def join(cls, graphs: Iterable[InputGraph]) -> InputGraph:
        """One after the other, as one: those of single samples as that of a mini-batch.

        Raises:
            EdBatchError: something else is among them.

        Example:
            >>> import edbatch as eb
            >>> tree = eb.InputGraph([0, 0, 0, 2], [0, 1])
            >>> eb.InputGraph.join([tree, tree]).roots
            array([2, 5])
        """
        listed = _given("join", "graphs", graphs)
        for one in listed:
            if not isinstance(one, InputGraph):
                raise EdBatchError(f"InputGraph.join: expected graphs, got {shown(one)} among them")
        begins = accumulate((len(one) for one in listed), initial=0)
        edges = accumulate((len(one._children) for one in listed), initial=0)
        children = [one._children + begin for one, begin in zip(listed, begins, strict=False)]
        offsets = [one._offsets[1:] + edge for one, edge in zip(listed, edges, strict=False)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            np.concatenate([_NOTHING, *children]),
            np.concatenate([_NOTHING, *(one._kinds for one in listed)]),
        )


def _first(wrong: np.ndarray) -> int:
    return int(wrong.argmax()) if wrong.any() else -1


def _given(place: str, what: str, given: Any) -> list[Any]:
    """What the caller lists."""
    try:
        iterator = iter(given)
    except TypeError:
        raise EdBatchError(f"InputGraph.{place}: expected a list of {what}, got {shown(given)}") from None
    return list(iterator)


def _integers(what: str, given: Any) -> np.ndarray:
    """Integers of the caller as an array of our own."""
    try:
        found = np.asarray(given)
    except Exception:  # what NumPy asks of the caller's object may raise anything
        found = np.empty((), object)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise EdBatchError(f"InputGraph: {what}: expected a list or an array of integers, got {shown(given)}")
    return found.astype(np.int64)


def _offsets_of(counts: Iterable[int]) -> np.ndarray:
    return np.fromiter(accumulate(counts, initial=0), np.int64)
