"""The lattice LSTM of `edbatch.models` in PyTorch: per sample, and batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.experiments.peers.peer import Peer, PerSample, lstm_cell, uploaded
from edbatch.models.lattice import Arcs


class LatticeSample(NamedTuple):
    """A lattice, as `edbatch.models.LatticeLSTM.loss` takes it."""

    arcs: Arcs
    tags: Sequence[int]


class _LatticeLSTM(Peer):
    compilable = ("step",)

    def inputs(self, characters: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """What the gates get from all characters, and from all words."""
        return (
            F.linear(self.lookup(self.embed_character, characters), self.character_W, self.character_b),
            F.linear(self.lookup(self.embed_word, words), self.word_W, self.word_b),
        )

    def step(self, gates: Tensor, h: Tensor, c: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """States [n, dim] after arcs; gates [n, 4 dim] are what the inputs give."""
        return lstm_cell(torch.addmm(gates, h, U.t()), c)


class LatticePerSample(PerSample, _LatticeLSTM):
    """One arc after the other. Look-ups, products with what was looked up, and the classifier run once per lattice."""

    def prepare(self, sample: LatticeSample) -> Any:
        """Characters, words and tags."""
        found: tuple[list[int], list[int]] = ([], [])
        for node, arcs in enumerate(sample.arcs):
            for source, id in arcs:
                found[source != node - 1].append(id)
        return sample.arcs, *(np.array(ids, np.int64) for ids in (*found, sample.tags[1:]))

    def batch(self, prepared: Sequence[Any]) -> list[Any]:
        """Indices go over at once."""
        tensors = iter(uploaded([array for one in prepared for array in one[1:]], self.device))
        return [(one[0], next(tensors), next(tensors), next(tensors)) for one in prepared]

    def of_sample(self, one: Any) -> Tensor:
        """One hidden state per node but the first."""
        arcs, characters, words, _ = one
        inputs = [iter(gates.split(1)) for gates in self.inputs(characters, words)]
        zero = self.W_out.new_zeros(1, self.dim)
        states = [(zero, zero)]
        for node in range(1, len(arcs)):
            ends = []
            for source, _ in arcs[node]:
                is_word = source != node - 1
                before, U = states[source], self.word_U if is_word else self.character_U
                ends.append(self.step(next(inputs[is_word]), before[0], before[1], U))
            h, c = ends[0]
            for h_other, c_other in ends[1:]:
                h, c = h + h_other, c + c_other
            states.append((h, c))
        return torch.cat([h for h, _ in states[1:]])


class _Prepared(NamedTuple):
    """Of one lattice: number of nodes, (node, id) of characters, (source, node, id) of words, tags."""

    nodes: int
    characters: np.ndarray
    words: np.ndarray
    tags: np.ndarray


class Positions(NamedTuple):
    """Indices of one mini-batch. The longest lattice is row 0 of the states of every position, and so on.

    Attributes:
        sizes: how many lattices have a position 0, 1, ...
        chain: whether exactly one character ends at every position but the first.
        n_characters: how many end at each position.
        rows: of the lattices where characters end, by position.
        sources: per position the rows of the words that begin there, ordered by the position where they end.
        ends: per position how many of these end at which position.
        targets: per position the rows of the words that end there, ordered by the position where they begin.
        characters, words: what is looked up, in these orders.
        tags: by position.
    """

    sizes: list[int]
    chain: bool
    n_characters: list[int]
    rows: Sequence[Tensor]
    sources: Sequence[Tensor]
    ends: list[list[tuple[int, int]]]
    targets: Sequence[Tensor]
    characters: Tensor
    words: Tensor
    tags: Tensor


class LatticeByPosition(_LatticeLSTM):
    """Batched by hand: at every position the characters of all lattices at once, and the words that begin there.

    Words that begin somewhere read one position's states, so nothing is copied from others; where they end, what they
    give is added up. Products with what is looked up run before, in one piece.
    """

    def prepare(self, sample: LatticeSample) -> _Prepared:
        """Arcs as arrays."""
        characters, words = [], []
        for node, arcs in enumerate(sample.arcs):
            for source, id in arcs:
                if source == node - 1:
                    characters.append((node, id))
                else:
                    words.append((source, node, id))
        return _Prepared(
            len(sample.arcs),
            np.array(characters, np.int64).reshape(-1, 2),
            np.array(words, np.int64).reshape(-1, 3),
            np.array(sample.tags, np.int64),
        )

    def batch(self, prepared: Sequence[_Prepared]) -> Positions:
        """Arcs by position."""
        prepared = sorted(prepared, key=lambda one: -one.nodes)
        nodes = np.array([one.nodes for one in prepared])
        positions = int(nodes[0])
        sizes = (nodes > np.arange(positions)[:, None]).sum(axis=1)

        def joined(name: str) -> tuple[np.ndarray, np.ndarray]:
            arrays = [getattr(one, name) for one in prepared]
            return np.concatenate(arrays), np.repeat(np.arange(len(arrays)), list(map(len, arrays)))

        characters, row = joined("characters")
        order = np.lexsort((row, characters[:, 0]))
        characters, row = characters[order], row[order]
        n_characters = np.bincount(characters[:, 0], minlength=positions)
        whole = np.arange(len(row)) - np.repeat(np.cumsum(n_characters) - n_characters, n_characters)
        chain = bool((n_characters[1:] == sizes[1:]).all() and (row == whole).all())

        words, word_row = joined("words")
        begun = np.lexsort((word_row, words[:, 1], words[:, 0]))
        ended = np.lexsort((word_row, words[:, 0], words[:, 1]))
        n_begun, n_ended = (np.bincount(words[:, column], minlength=positions) for column in (0, 1))
        pairs, counts = np.unique(words[:, :2], axis=0, return_counts=True)
        ends: list[list[tuple[int, int]]] = [[] for _ in range(positions)]
        for (source, target), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            ends[source].append((target, count))

        tags, tag_row = joined("tags")
        tag_node = np.concatenate([np.arange(n) for n in nodes])
        by_position = np.lexsort((tag_row, tag_node))[len(nodes) :]  # without the first nodes
        on_device = uploaded(
            [row, word_row[begun], word_row[ended], characters[:, 1], words[begun, 2], tags[by_position]], self.device
        )
        return Positions(
            sizes.tolist(), chain, n_characters.tolist(), on_device[0].split(n_characters.tolist()),
            on_device[1].split(n_begun.tolist()), ends, on_device[2].split(n_ended.tolist()), *on_device[3:],
        )  # fmt: skip

    def hidden(self, batch: Positions) -> Tensor:
        """Nodes but the first by position."""
        from_characters, from_words = self.inputs(batch.characters, batch.words)
        characters = from_characters.split(batch.n_characters)
        words = iter(from_words.split([len(rows) for rows in batch.sources]))
        h = c = self.W_out.new_zeros(batch.sizes[0], self.dim)
        arrived: list[list[tuple[Tensor, Tensor]]] = [[] for _ in batch.sizes]
        hs = []
        for position, size in enumerate(batch.sizes):
            if position:
                rows = batch.rows[position]
                before = (h[:size], c[:size]) if batch.chain else (h.index_select(0, rows), c.index_select(0, rows))
                h, c = self.step(characters[position], *before, self.character_U)
                if not batch.chain:
                    zero = self.W_out.new_zeros(size, self.dim)
                    h, c = zero.index_add(0, rows, h), zero.index_add(0, rows, c)
                if arrived[position]:
                    h_words, c_words = (torch.cat(parts) for parts in zip(*arrived[position], strict=True))
                    targets = batch.targets[position]
                    h, c = h.index_add(0, targets, h_words), c.index_add(0, targets, c_words)
                    arrived[position] = []
                hs.append(h)
            gates, rows = next(words), batch.sources[position]
            if len(rows):
                h_words, c_words = self.step(gates, h.index_select(0, rows), c.index_select(0, rows), self.word_U)
                counts = [count for _, count in batch.ends[position]]
                parts = zip(h_words.split(counts), c_words.split(counts), strict=True)
                for (target, _), part in zip(batch.ends[position], parts, strict=True):
                    arrived[target].append(part)
        return torch.cat(hs)
