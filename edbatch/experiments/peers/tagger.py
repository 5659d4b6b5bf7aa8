"""The BiLSTM taggers in PyTorch: per sample, packed for cuDNN's LSTM, and batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from edbatch.experiments.peers.peer import Peer, PerSample, uploaded
from edbatch.experiments.peers.recurrent import BothWays, LibraryLSTMs, by_position, last_outputs
from edbatch.experiments.peers.samples import TaggedSample


class _Prepared(NamedTuple):
    """Of one sentence: words (-1: spelled), the characters of every word that is spelled, tags."""

    words: np.ndarray
    spelled: list[np.ndarray]
    tags: np.ndarray


class _Tagger(Peer):
    def prepare(self, sample: TaggedSample) -> _Prepared:
        """Words and tags."""
        spelled = [np.array(word) for word in sample.words if isinstance(word, Sequence)]
        words = [-1 if isinstance(word, Sequence) else word for word in sample.words]
        return _Prepared(np.array(words), spelled, np.array(sample.tags))

    def perceptron(self, right: Tensor, left: Tensor) -> Tensor:
        """The hidden layer over the outputs of reading from either side."""
        return torch.tanh(F.linear(torch.cat([right, left], 1), self.W_hidden, self.b_hidden))


class TaggerPerSample(PerSample, _Tagger, LibraryLSTMs):
    """One sentence after the other through the library's LSTMs; words that are spelled, one after the other."""

    def batch(self, prepared: Sequence[_Prepared]) -> list[Any]:
        """Indices go over at once."""
        arrays = [array for one in prepared for array in (one.words[one.words >= 0], *one.spelled, one.tags)]
        tensors = iter(uploaded(arrays, self.device))
        return [
            (one.words.tolist(), next(tensors), [next(tensors) for _ in one.spelled], next(tensors)) for one in prepared
        ]

    def of_sample(self, one: Any) -> Tensor:
        """One hidden state per word."""
        words, known, spelled, _ = one
        x = self.lookup(self.embed, known)
        if spelled:
            rows, others = iter(x.split(1)), iter(spelled)
            x = torch.cat([next(rows) if word >= 0 else self.spell(next(others)) for word in words])
        return self.perceptron(self.right(x)[0], self.left(x.flip(0))[0].flip(0))

    def spell(self, word: Tensor) -> Tensor:
        """The embedding [1, dim] of a word from its characters."""
        x = self.lookup(self.characters, word)
        return torch.cat([self.spell_right(x)[1][0], self.spell_left(x.flip(0))[1][0]], 1)


class Spelled(NamedTuple):
    """The words of a mini-batch that are spelled, by position.

    Attributes:
        sizes: how many have a first character, a second, ...
        characters: in this order.
        reverse: where each character stands if every word is reversed.
        place: of all words, where they are among (words that are looked up, words that are spelled).
    """

    sizes: list[int]
    characters: Tensor
    reverse: Tensor
    place: Tensor


class Packed(NamedTuple):
    """Indices of one mini-batch: the first words of all sentences, the second, ...; the longest sentence first.

    Attributes:
        sizes: how many sentences have a first word, a second, ...
        words: in this order, those that are looked up.
        spelled: the others, if there are any.
        reverse: where each word stands if every sentence is reversed; its own inverse.
        tags: in this order.
    """

    sizes: list[int]
    words: Tensor
    spelled: Spelled | None
    reverse: Tensor
    tags: Tensor


class _ByPosition(_Tagger):
    def batch(self, prepared: Sequence[_Prepared]) -> Packed:
        """Words by position."""
        order = by_position(np.array([len(one.words) for one in prepared]))
        words, tags = order.put([one.words for one in prepared]), order.put([one.tags for one in prepared])
        spelled = None
        if any(one.spelled for one in prepared):
            spelled, words = self._spelled(prepared, order.longest, order.at, words)
        words, reverse, tags = uploaded([words, order.reverse, tags], self.device)
        return Packed(order.sizes.tolist(), words, spelled, reverse, tags)

    def _spelled(
        self, prepared: Sequence[_Prepared], longest: np.ndarray, at: np.ndarray, words: np.ndarray
    ) -> tuple[Spelled, np.ndarray]:
        """What is spelled, and the words that are not."""
        found = [word for sentence in longest for word in prepared[sentence].spelled]
        order = by_position(np.array(list(map(len, found))))
        known = words >= 0
        rank = np.empty(len(found), np.int64)
        rank[order.longest] = np.arange(len(found))
        place = np.cumsum(known) - 1
        place[at[~known[at]]] = known.sum() + rank
        tensors = uploaded([order.put(found), order.reverse, place], self.device)
        return Spelled(order.sizes.tolist(), *tensors), words[known]

    def embedded(self, batch: Packed) -> Tensor:
        """Words by position [words, dim]."""
        x = self.lookup(self.embed, batch.words)
        if batch.spelled is None:
            return x
        characters = self.lookup(self.characters, batch.spelled.characters)
        return torch.cat([x, self.spell(characters, batch.spelled)]).index_select(0, batch.spelled.place)

    def spell(self, x: Tensor, spelled: Spelled) -> Tensor:
        """Embeddings [words, dim] of words, the longest first, from those of characters by position."""
        raise NotImplementedError


class TaggerPacked(_ByPosition, LibraryLSTMs):
    """The library's LSTMs over packed sequences: nothing is padded."""

    def hidden(self, batch: Packed) -> Tensor:
        """Words by position."""
        x = self.embedded(batch)
        sizes = torch.tensor(batch.sizes)  # on the CPU, as the library asks
        right = self.right(PackedSequence(x, sizes))[0].data
        left = self.left(PackedSequence(x.index_select(0, batch.reverse), sizes))[0].data
        return self.perceptron(right, left.index_select(0, batch.reverse))

    def spell(self, x: Tensor, spelled: Spelled) -> Tensor:
        """Last outputs of both ways."""
        sizes = torch.tensor(spelled.sizes)
        right = self.spell_right(PackedSequence(x, sizes))[1][0][0]
        left = self.spell_left(PackedSequence(x.index_select(0, spelled.reverse), sizes))[1][0][0]
        return torch.cat([right, left], 1)


class TaggerByPosition(_ByPosition, BothWays):
    """Batched by hand: at every position both ways at once; products with the inputs of all positions before that.

    Words that are spelled so need states of an even size, the two ways of which are equally large.
    """

    compilable = ("step", "perceptron")

    def hidden(self, batch: Packed) -> Tensor:
        """Words by position."""
        x = self.embedded(batch)
        x = torch.stack([x, x.index_select(0, batch.reverse)])
        for layer in sorted(name.removesuffix("_U") for name in self.pairs if name.startswith("both") and "_U" in name):
            x = torch.cat(self.read(x, batch.sizes, layer), 1)
        return self.perceptron(x[0], x[1].index_select(0, batch.reverse))

    def spell(self, x: Tensor, spelled: Spelled) -> Tensor:
        """Last outputs of both ways."""
        hs = self.read(torch.stack([x, x.index_select(0, spelled.reverse)]), spelled.sizes, "spell_both")
        right, left = last_outputs(hs, spelled.sizes)
        return torch.cat([right, left], 1)
