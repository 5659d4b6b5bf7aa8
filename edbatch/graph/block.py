"""Blocks: recorded nodes, relative to where they are put; `recorder.place` puts them, once or many times."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.node_type import NodeType
from edbatch.graph.views import NODE_MASK

#: What an integer of a block is added to: nothing, the id of the instance's first node, the first number that is drawn
#: for it, or, from `ARGUMENTS` on, one of its arguments.
NOTHING, FIRST, DRAW, ARGUMENTS = range(4)

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
    """Numbers nodes anew, without those that stand for something from elsewhere.

    Attributes:
        numbers: of the nodes.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self._bases: dict[Hashable, int] = {base: base for base in (NOTHING, FIRST, DRAW)}
        self._types: list[int] = []
        self._operands: list[Pair] = []
        self._integers: list[Pair] = []

    @property
    def arguments(self) -> list[Any]:
        """Their keys."""
        return list(self._bases)[ARGUMENTS:]

    def add(self, node: int, type: NodeType, operands: list[int], integers: Iterable[tuple[int, Hashable]]) -> None:
        """Add a node.

        Args:
            node: its number before.
            operands: ids.
            integers: and what each is added to.
        """
        self.numbers[node] = len(self._types)
        self._types.append(type.id)
        if type.n_operands < 0:
            self._operands.append((len(operands), NOTHING))
        self._operands += map(self.operand, operands)
        self._integers += [self._pair(*x) for x in integers]

    def elsewhere(self, id: int) -> tuple[int, Hashable] | None:
        """Of what is from elsewhere a number, and what it is added to: `NOTHING`, or another key, an argument's."""
        raise NotImplementedError

    def operand(self, id: int) -> Pair:
        """An expression, relative."""
        found = self.elsewhere(id)
        node = id & NODE_MASK
        return (self.numbers[node] + id - node, FIRST) if found is None else self._pair(*found)

    def block(self, results: list[Pair], arguments: Iterable[Pair], n_draws: int, lines: list[str]) -> Block:
        """What was added; `lines`: of all nodes that were recorded, or none."""
        kept = tuple([lines[node] for node in self.numbers]) if lines else ()
        types = pack(f"{len(self._types)}i", *self._types)
        pairs = (packed(x) for x in (self._operands, self._integers, results, arguments))
        return Block(types, *pairs, n_draws, kept)

    def _pair(self, number: int, base: Hashable) -> Pair:
        return number, self._bases.setdefault(base, len(self._bases))


def packed(pairs: Iterable[Pair]) -> bytes:
    """Pairs as a block has them."""
    flat = list(chain.from_iterable(pairs))
    return pack(f"{len(flat)}q", *flat)
