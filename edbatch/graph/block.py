"""Blocks: recorded nodes, relative to where they are put; `place` puts them, once or many times."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.node_type import NodeType
from edbatch.graph.recorder import place_in_c
from edbatch.graph.views import NODE_MASK

#: What an integer of a block is added to: nothing, the id of the instance's first node, the first number that is drawn
#: for it, or, from `ARGUMENTS` on, one of its arguments.
NOTHING, FIRST, DRAW, ARGUMENTS = range(4)

#: From here on, integers of a graph that never runs stand for what is drawn: no seed, index or number is as large.
DRAWN = 1 << 62

Pair = tuple[int, int]


class Block(NamedTuple):
    """Nodes as bytes, which compare exactly, and which C reads without asking.

    Attributes:
        types: type ids (int32).
        operands, integers, results: pairs (int64): a number, and which of the instance's bases it is added to.
        arguments: pairs (int64): a child of the instance, and which of its results; or -1, and which column.
        n_draws: how many numbers are drawn.
        lines: where each node was recorded, if that is noted.
    """

    types: bytes
    operands: bytes
    integers: bytes
    results: bytes
    arguments: bytes
    n_draws: int
    lines: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many nodes."""
        return len(self.types) // 4


class Instances(NamedTuple):
    """Where several blocks are put, one after the other.

    Attributes:
        times: per block how many there are of it.
        which: per instance its block (int32); None: there is one block.
        ranks: per instance its entry in columns; None: they are numbered as the instances.
        order: in which they are put; None: that of their numbers.
        offsets, children: the children of instance i are `children[offsets[i]:offsets[i + 1]]`; they are put before it.
        results: [n, results] ids, filled in.
    """

    times: list[int]
    which: np.ndarray | None = None
    ranks: np.ndarray | None = None
    order: np.ndarray | None = None
    offsets: np.ndarray | None = None
    children: np.ndarray | None = None
    results: np.ndarray | None = None


class BlockWriter:
    """Numbers nodes anew, without `sources`, which stand for something from elsewhere."""

    def __init__(self, sources: Collection[int]) -> None:
        self.numbers: dict[int, int] = {}
        self._sources = sources
        self._bases: dict[Hashable, int] = {base: base for base in (NOTHING, FIRST, DRAW)}
        self._types: list[int] = []
        self._operands: list[Pair] = []
        self._integers: list[Pair] = []

    @property
    def arguments(self) -> list[Any]:
        """Their keys."""
        return list(self._bases)[ARGUMENTS:]

    def add(self, node: int, type: NodeType, operands: list[int], integers: list[tuple[int, Hashable]]) -> None:
        """Add a node by its number before, ids of operands, and integers with what each is added to."""
        self.numbers[node] = len(self._types)
        self._types.append(type.id)
        if type.n_operands < 0:
            self._operands.append((len(operands), NOTHING))
        # Without sources, numbers are those before.
        self._operands += map(self.operand, operands) if self._sources else [(id, FIRST) for id in operands]
        if integers:
            bases = self._bases
            self._integers += [(number, bases.setdefault(base, len(bases))) for number, base in integers]

    def read(self, nodes: Iterable[tuple[NodeType, list[Any], list[Any]]]) -> None:
        """Add all nodes but those from elsewhere."""
        for node, (type, operands, integers) in enumerate(nodes):
            if node not in self._sources:
                self.add(node, type, operands, [self.integer(type, x) for x in integers])

    def integer(self, type: NodeType, x: Any) -> tuple[int, Hashable]:
        """An integer of a node, and what it is added to."""
        return (x - DRAWN, DRAW) if x >= DRAWN else (x, NOTHING)

    def elsewhere(self, id: int) -> tuple[int, Hashable]:
        """Of what is from elsewhere a number, and what it is added to: `NOTHING`, or another key, an argument's."""
        raise NotImplementedError

    def operand(self, id: int) -> Pair:
        """An expression, relative."""
        node = id & NODE_MASK
        return self._pair(*self.elsewhere(id)) if node in self._sources else (self.numbers[node] + id - node, FIRST)

    def block(self, results: Iterable[Pair], arguments: Iterable[Pair], n_draws: int, lines: list[str]) -> Block:
        """What was added; `lines`: of all nodes that were recorded, or none."""
        kept = tuple([lines[node] for node in self.numbers]) if lines else ()
        types = pack(f"{len(self._types)}i", *self._types)
        operands, integers = packed(self._operands), packed(self._integers)
        return Block(types, operands, integers, packed(results), packed(arguments), n_draws, kept)

    def _pair(self, number: int, base: Hashable) -> Pair:
        return number, self._bases.setdefault(base, len(self._bases))


def one_node(type: NodeType, n_operands: int) -> Block:
    """A node whose operands and integers are arguments."""
    return _one_node(type.id, n_operands, type.n_integers, type.n_operands < 0)


@lru_cache(1 << 12)
def _one_node(type: int, n_operands: int, n_integers: int, is_variadic: bool) -> Block:
    count = [(n_operands, NOTHING)] if is_variadic else []
    columns = [(0, ARGUMENTS + k) for k in range(n_operands + n_integers)]
    operands, integers = packed([*count, *columns[:n_operands]]), packed(columns[n_operands:])
    return Block(pack("i", type), operands, integers, b"", packed([(-1, k) for k in range(len(columns))]), 0)


def packed(pairs: Iterable[Pair]) -> bytes:
    """Pairs as a block has them."""
    flat = list(chain.from_iterable(pairs))
    return pack(f"{len(flat)}q", *flat)


def place_in_python(
    graph: Any, blocks: tuple[Block, ...], columns: Sequence[Any], draw: int, instances: Instances | None
) -> int:
    """Append the nodes of instances of blocks to a graph, one after the other; the id of the first.

    Args:
        columns: of arguments; integers that are those of all instances, and arrays (int64) of them.
        draw: the first number that is drawn.
        instances: None: one, of the first block.
    """
    read = [[np.frombuffer(x, np.int64).reshape(-1, 2).tolist() for x in block[1:5]] for block in blocks]
    given: Any = instances or Instances([1])
    results, first = given.results, graph.n
    for at in range(sum(given.times)) if given.order is None else given.order.tolist():
        rank = at if given.ranks is None else given.ranks[at]
        number = 0 if given.which is None else given.which[at]
        block, (*nodes, returned, arguments) = blocks[number], read[number]
        bases = [0, graph.n, draw]
        for child, of in arguments:
            if child >= 0:
                bases.append(int(results[given.children[given.offsets[at] + child], of]))
            else:
                bases.append(columns[of] if columns[of].__class__ is int else int(columns[of][rank]))
        operands, integers = ([number + bases[base] for number, base in pairs] for pairs in nodes)
        graph.append(np.frombuffer(block.types, np.int32).tolist(), operands, integers)
        if block.lines:
            graph.types.lines[-block.n :] = block.lines
        if results is not None:
            results[at, : len(returned)] = [number + bases[base] for number, base in returned]
        draw += block.n_draws
    return int(first)


#: In C where that was built; where columns are lists, that calls the loop in Python.
place = place_in_c or place_in_python
