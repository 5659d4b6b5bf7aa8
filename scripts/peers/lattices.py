"""The lattice networks of `edbatch.models` in PyTorch, batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from scripts.peers.peer import Peer, joined, lstm_cell, uploaded

State = tuple[Tensor, ...]  # of nodes [n, dim], the first is the output


class Positions(NamedTuple):
    """Indices of one mini-batch. The longest lattice is row 0 of the states of every position, and so on.

    Attributes:
        sizes: how many lattices have a position 0, 1, ...
        ends: per position how many of the words that begin there end at which position.
        sources: per position the rows of the words that begin there, ordered by the position where they end.
        targets: per position the rows of the words that end there, ordered by the position where they begin.
        arcs: per position how many arcs end there [lattices, 1].
        characters, words: what is looked up, in these orders.
        tags: by position.
    """

    sizes: list[int]
    ends: list[list[tuple[int, int]]]
    sources: Sequence[Tensor]
    targets: Sequence[Tensor]
    arcs: Sequence[Tensor]
    characters: Tensor
    words: Tensor
    tags: Tensor


class LatticePeer(Peer):
    """Batched by hand: at every position the characters of all lattices at once, and the words that begin there.

    Words that begin somewhere read one position's states, so nothing is copied from others; where they end, what they
    give is added up, and divided by the number of arcs. Products with what is looked up run before, in one piece.
    """

    states: int  # of a node

    def recurrent(self, name: str) -> tuple[Tensor, ...]:
        """What else `step` needs for characters, or for words."""
        return (getattr(self, f"{name}_U"),)

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """States after arcs; gates [n, ...] are what the inputs give; the states before, and what `recurrent` gave."""
        raise NotImplementedError

    def prepare(self, sample: Any) -> Any:
        """Characters, one at every node but the first; (source, node, number) of words; tags."""
        (arcs,) = sample.inputs
        found = [(source, node, number) for node, ends in enumerate(arcs) for source, number in ends]
        characters = [number for source, node, number in found if source == node - 1]
        assert len(characters) == len(arcs) - 1
        words = [one for one in found if one[0] != one[1] - 1]
        return np.array(characters), np.array(words, np.int64).reshape(-1, 3), np.array(sample.right)

    def batch(self, prepared: Sequence[Any]) -> Positions:
        """Arcs by position."""
        prepared = sorted(prepared, key=lambda one: -len(one[0]))
        nodes = np.array([1 + len(one[0]) for one in prepared])
        sizes = (nodes > np.arange(nodes[0])[:, None]).sum(axis=1)
        first = np.cumsum(sizes) - sizes
        characters, row = joined([one[0] for one in prepared])
        by_position = np.lexsort((row, np.concatenate([np.arange(n - 1) for n in nodes])))
        words, word_row = joined([one[1] for one in prepared])
        begun = np.lexsort((word_row, words[:, 1], words[:, 0]))
        ended = np.lexsort((word_row, words[:, 0], words[:, 1]))
        n_begun, n_ended = (np.bincount(words[:, column], minlength=nodes[0]).tolist() for column in (0, 1))
        pairs, counts = np.unique(words[:, :2], axis=0, return_counts=True)
        ends: list[list[tuple[int, int]]] = [[] for _ in range(nodes[0])]
        for (source, target), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            ends[source].append((target, count))
        arcs = 1 + np.bincount(first[words[:, 1]] + word_row, minlength=sizes.sum())
        tags = np.concatenate([one[2] for one in prepared])[by_position]
        arrays = [word_row[begun], word_row[ended], arcs, characters[by_position], words[begun, 2], tags]
        sources, targets, n_arcs, *looked_up = uploaded(arrays, self.device)
        return Positions(
            sizes.tolist(), ends, sources.split(n_begun), targets.split(n_ended),
            n_arcs[:, None].split(sizes.tolist()), *looked_up,
        )  # fmt: skip

    def hidden(self, batch: Positions) -> Tensor:
        """Nodes but the first by position."""
        inputs = [
            F.linear(self.lookup(table, numbers), W, b)
            for table, numbers, W, b in (
                (self.embed_character, batch.characters, self.character_W, self.character_b),
                (self.embed_word, batch.words, self.word_W, self.word_b),
            )
        ]
        characters, words = inputs[0].split(batch.sizes[1:]), inputs[1].split([len(rows) for rows in batch.sources])
        of_characters, of_words = self.recurrent("character"), self.recurrent("word")
        state: State = (self.W_out.new_zeros(batch.sizes[0], self.dim),) * self.states
        arrived: list[list[State]] = [[] for _ in batch.sizes]
        hs = []
        for position, size in enumerate(batch.sizes):
            if position:
                state = self.step(characters[position - 1], *(of[:size] for of in state), *of_characters)
                if found := arrived[position]:
                    added = (torch.cat(of) for of in zip(*found, strict=True))
                    rows, arcs = batch.targets[position], batch.arcs[position]
                    state = tuple(of.index_add(0, rows, more) / arcs for of, more in zip(state, added, strict=True))
                hs.append(state[0])
            if ends := batch.ends[position]:
                before = (of.index_select(0, batch.sources[position]) for of in state)
                read = self.step(words[position], *before, *of_words)
                parts = zip(*(of.split([count for _, count in ends]) for of in read), strict=True)
                for (target, _), part in zip(ends, parts, strict=True):
                    arrived[target].append(part)
        return torch.cat(hs)


class LatticeLSTM(LatticePeer):
    """Hidden and cell states."""

    states = 2

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """See `LatticePeer.step`."""
        h, c, U = others
        return lstm_cell(torch.addmm(gates, h, U.t()), c)


class LatticeGRU(LatticePeer):
    """One state."""

    states = 1

    def recurrent(self, name: str) -> tuple[Tensor, ...]:
        """A matrix, and the bias of its product, of which only that for new values is not zero."""
        zeros = self.W_out.new_zeros(2 * self.dim)
        return getattr(self, f"{name}_U"), torch.cat([zeros, getattr(self, f"{name}_b_n")])

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """See `LatticePeer.step`."""
        (h, U, b), d = others, self.dim
        from_state = F.linear(h, U, b)
        z, r = torch.sigmoid(gates[:, : 2 * d] + from_state[:, : 2 * d]).chunk(2, 1)
        new = torch.tanh(torch.addcmul(gates[:, 2 * d :], r, from_state[:, 2 * d :]))
        return (torch.lerp(new, h, z),)


PEERS: dict[str, dict[str, type[Peer]]] = {
    "lattice-lstm": {"by hand": LatticeLSTM},
    "lattice-gru": {"by hand": LatticeGRU},
}
