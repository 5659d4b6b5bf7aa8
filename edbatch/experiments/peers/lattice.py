"""The lattice networks of `edbatch.models` in PyTorch: per sample, and batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.experiments.peers.peer import Peer, PerSample, lstm_cell, uploaded
from edbatch.experiments.peers.samples import LatticeSample

State = tuple[Tensor, ...]  # of nodes [n, dim], the first is the output


class LatticePeer(Peer):
    """What the equations are asked for."""

    compilable = ("step",)
    states: int  # of a node

    def inputs(self, characters: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """What the gates get from all characters, and from all words."""
        return (
            F.linear(self.lookup(self.embed_character, characters), self.character_W, self.character_b),
            F.linear(self.lookup(self.embed_word, words), self.word_W, self.word_b),
        )

    def recurrent(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """What else `step` needs for characters, and for words."""
        return (self.character_U,), (self.word_U,)

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """States after arcs; gates [n, ...] are what the inputs give; the states before, and what `recurrent` gave."""
        raise NotImplementedError


class _LSTM(LatticePeer):
    states = 2

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """Hidden and cell states."""
        h, c, U = others
        return lstm_cell(torch.addmm(gates, h, U.t()), c)


class _GRU(LatticePeer):
    states = 1

    def recurrent(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Matrices, and biases of their products, of which only that for new values is not zero."""
        zeros = self.W_out.new_zeros(2 * self.dim)
        return (
            (self.character_U, torch.cat([zeros, self.character_b_n])),
            (self.word_U, torch.cat([zeros, self.word_b_n])),
        )

    def step(self, gates: Tensor, *others: Tensor) -> State:
        """States."""
        (h, U, b), d = others, self.dim
        from_state = F.linear(h, U, b)
        z, r = torch.sigmoid(gates[:, : 2 * d] + from_state[:, : 2 * d]).chunk(2, 1)
        new = torch.tanh(torch.addcmul(gates[:, 2 * d :], r, from_state[:, 2 * d :]))
        return (torch.lerp(new, h, z),)


class LatticePerSample(PerSample, LatticePeer):
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
        others = self.recurrent()
        states: list[State] = [(self.W_out.new_zeros(1, self.dim),) * self.states]
        for node in range(1, len(arcs)):
            ends = []
            for source, _ in arcs[node]:
                is_word = source != node - 1
                ends.append(self.step(next(inputs[is_word]), *states[source], *others[is_word]))
            states.append(ends[0] if len(ends) == 1 else tuple(_mean(of) for of in zip(*ends, strict=True)))
        return torch.cat([state[0] for state in states[1:]])


def _mean(parts: Sequence[Tensor]) -> Tensor:
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found / len(parts)


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
        arcs: per position how many arcs end there [lattices, 1].
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
    arcs: Sequence[Tensor]
    characters: Tensor
    words: Tensor
    tags: Tensor


class LatticeByPosition(LatticePeer):
    """Batched by hand: at every position the characters of all lattices at once, and the words that begin there.

    Words that begin somewhere read one position's states, so nothing is copied from others; where they end, what they
    give is added up, and divided by the number of arcs. Products with what is looked up run before, in one piece.
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

        characters, row = _joined([one.characters for one in prepared])
        order = np.lexsort((row, characters[:, 0]))
        characters, row = characters[order], row[order]
        n_characters = np.bincount(characters[:, 0], minlength=positions)
        whole = np.arange(len(row)) - np.repeat(np.cumsum(n_characters) - n_characters, n_characters)
        chain = bool((n_characters[1:] == sizes[1:]).all() and (row == whole).all())

        words, word_row = _joined([one.words for one in prepared])
        begun = np.lexsort((word_row, words[:, 1], words[:, 0]))
        ended = np.lexsort((word_row, words[:, 0], words[:, 1]))
        n_begun, n_ended = (np.bincount(words[:, column], minlength=positions) for column in (0, 1))
        pairs, counts = np.unique(words[:, :2], axis=0, return_counts=True)
        ends: list[list[tuple[int, int]]] = [[] for _ in range(positions)]
        for (source, target), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            ends[source].append((target, count))

        first = np.cumsum(sizes) - sizes
        ending = np.concatenate([first[characters[:, 0]] + row, first[words[:, 1]] + word_row])
        arcs = np.bincount(ending, minlength=sizes.sum())

        tags, tag_row = _joined([one.tags for one in prepared])
        tag_node = np.concatenate([np.arange(n) for n in nodes])
        by_position = np.lexsort((tag_row, tag_node))[len(nodes) :]  # without the first nodes
        on_device = uploaded(
            [row, word_row[begun], word_row[ended], arcs, characters[:, 1], words[begun, 2], tags[by_position]],
            self.device,
        )
        return Positions(
            sizes.tolist(), chain, n_characters.tolist(), on_device[0].split(n_characters.tolist()),
            on_device[1].split(n_begun.tolist()), ends, on_device[2].split(n_ended.tolist()),
            on_device[3][:, None].split(sizes.tolist()), *on_device[4:],
        )  # fmt: skip

    def hidden(self, batch: Positions) -> Tensor:
        """Nodes but the first by position."""
        from_characters, from_words = self.inputs(batch.characters, batch.words)
        characters = from_characters.split(batch.n_characters)
        words = iter(from_words.split([len(rows) for rows in batch.sources]))
        of_characters, of_words = self.recurrent()
        state: State = (self.W_out.new_zeros(batch.sizes[0], self.dim),) * self.states
        arrived: list[list[State]] = [[] for _ in batch.sizes]
        hs = []
        for position in range(len(batch.sizes)):
            if position:
                state = self._after(batch, position, (characters[position], of_characters), state, arrived[position])
                arrived[position] = []
                hs.append(state[0])
            gates, rows = next(words), batch.sources[position]
            if len(rows):
                read = self.step(gates, *(of.index_select(0, rows) for of in state), *of_words)
                counts = [count for _, count in batch.ends[position]]
                parts = zip(*(of.split(counts) for of in read), strict=True)
                for (target, _), part in zip(batch.ends[position], parts, strict=True):
                    arrived[target].append(part)
        return torch.cat(hs)

    def _after(
        self, batch: Positions, position: int, characters: tuple[Tensor, tuple[Tensor, ...]], state: State,
        arrived: list[State],
    ) -> State:  # fmt: skip
        """The states at a position, of those before and of what words gave that end there."""
        size, rows = batch.sizes[position], batch.rows[position]
        before = [of[:size] if batch.chain else of.index_select(0, rows) for of in state]
        found = self.step(characters[0], *before, *characters[1])
        if not batch.chain:
            zero = self.W_out.new_zeros(size, self.dim)
            found = tuple(zero.index_add(0, rows, of) for of in found)
        if arrived:
            targets = batch.targets[position]
            added = (torch.cat(of) if len(of) > 1 else of[0] for of in zip(*arrived, strict=True))
            found = tuple(of.index_add(0, targets, more) for of, more in zip(found, added, strict=True))
        if arrived or not batch.chain:
            found = tuple(of / batch.arcs[position] for of in found)
        return found


def _joined(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """One below the other, and which each row is of."""
    return np.concatenate(arrays), np.repeat(np.arange(len(arrays)), list(map(len, arrays)))


class LatticeLSTMPerSample(LatticePerSample, _LSTM):
    """Lattice LSTM, arc by arc."""


class LatticeLSTMByPosition(LatticeByPosition, _LSTM):
    """Lattice LSTM, position by position."""


class LatticeGRUPerSample(LatticePerSample, _GRU):
    """Lattice GRU, arc by arc."""


class LatticeGRUByPosition(LatticeByPosition, _GRU):
    """Lattice GRU, position by position."""
