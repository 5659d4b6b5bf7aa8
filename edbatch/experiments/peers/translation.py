"""The encoder-decoder of `edbatch.models` in PyTorch: per sample, packed, and padded and masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from edbatch.experiments.peers.peer import Peer, PerSample, lstm_cell, uploaded
from edbatch.experiments.peers.recurrent import LibraryLSTMs, by_position
from edbatch.experiments.peers.samples import PairSample

START = 1  # what `edbatch.models.EncoderDecoder` begins every sentence with


class _Prepared(NamedTuple):
    """Of one pair: what is read, what the decoder is told, what it is to say."""

    source: np.ndarray
    told: np.ndarray
    said: np.ndarray


class _Translation(Peer):
    def prepare(self, sample: PairSample) -> _Prepared:
        """Words."""
        return _Prepared(np.array(sample.source), np.array([START, *sample.target]), np.array(sample.said))


class TranslationPerSample(PerSample, _Translation, LibraryLSTMs):
    """One pair after the other through the library's LSTMs."""

    def batch(self, prepared: Sequence[_Prepared]) -> list[Any]:
        """Indices go over at once."""
        tensors = iter(uploaded([array for one in prepared for array in one], self.device))
        return [(next(tensors), next(tensors), next(tensors)) for _ in prepared]

    def of_sample(self, one: Any) -> Tensor:
        """One hidden state per word that is said."""
        source, told, _ = one
        state = self.encoder(self.lookup(self.embed_source, source))[1]
        return self.decoder(self.lookup(self.embed_target, told), state)[0]


class PackedPairs(NamedTuple):
    """Indices of one mini-batch, sources and targets each by position, the longest first.

    Attributes:
        source_sizes, told_sizes: how many have a first word, a second, ...
        longest: of the targets, in their order, which source it is of, in that of the sources.
        source, told, said: in these orders.
    """

    source_sizes: list[int]
    told_sizes: list[int]
    longest: Tensor
    source: Tensor
    told: Tensor
    said: Tensor


class TranslationPacked(_Translation, LibraryLSTMs):
    """The library's LSTMs over packed sequences; scores of words that are there, and no others."""

    def batch(self, prepared: Sequence[_Prepared]) -> PackedPairs:
        """Words by position."""
        source = by_position(np.array([len(one.source) for one in prepared]))
        told = by_position(np.array([len(one.told) for one in prepared]))
        rank = np.empty(len(prepared), np.int64)
        rank[source.longest] = np.arange(len(prepared))
        words = [source.put([one.source for one in prepared])]
        words += [told.put([one.told for one in prepared]), told.put([one.said for one in prepared])]
        tensors = uploaded([rank[told.longest], *words], self.device)
        return PackedPairs(source.sizes.tolist(), told.sizes.tolist(), *tensors)

    def hidden(self, batch: PackedPairs) -> Tensor:
        """Words that are said, by position."""
        source = PackedSequence(self.lookup(self.embed_source, batch.source), torch.tensor(batch.source_sizes))
        h, c = (of.index_select(1, batch.longest) for of in self.encoder(source)[1])
        told = PackedSequence(self.lookup(self.embed_target, batch.told), torch.tensor(batch.told_sizes))
        return self.decoder(told, (h, c))[0].data


class PaddedPairs(NamedTuple):
    """Indices of one mini-batch.

    Attributes:
        source, told: padded [positions, pairs].
        there: which source words are there [positions, pairs, 1].
        places: of what is said in [positions, pairs].
        said: of these, pair by pair.
    """

    source: Tensor
    told: Tensor
    there: Tensor
    places: Tensor
    said: Tensor


class TranslationPadded(_Translation):
    """Padded: every position of all pairs at once. A mask keeps the state of a source that has ended; what the decoder
    computes beyond an end is never read. Products with the inputs of all positions run before, and scores are of words
    that are there.
    """

    compilable = ("step", "masked_step")

    def batch(self, prepared: Sequence[_Prepared]) -> PaddedPairs:
        """Padded words."""
        n = len(prepared)
        source, told = _padded([one.source for one in prepared]), _padded([one.told for one in prepared])
        lengths = np.array([len(one.source) for one in prepared])
        there = np.arange(len(source))[:, None] < lengths
        places = np.concatenate([np.arange(len(one.told)) * n + pair for pair, one in enumerate(prepared)])
        said = np.concatenate([one.said for one in prepared])
        on_device = uploaded([source.ravel(), told.ravel(), there.ravel(), places, said], self.device)
        return PaddedPairs(
            on_device[0].view(-1, n), on_device[1].view(-1, n), on_device[2].view(-1, n, 1) > 0, *on_device[3:]
        )

    def step(self, gates: Tensor, h: Tensor, c: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """States [n, dim] after one position; gates [n, 4 dim] are what the inputs give."""
        return lstm_cell(torch.addmm(gates, h, U.t()), c)

    def masked_step(self, gates: Tensor, h: Tensor, c: Tensor, U: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """The same, where there is a word; else the states before."""
        h_next, c_next = lstm_cell(torch.addmm(gates, h, U.t()), c)
        return torch.where(there, h_next, h), torch.where(there, c_next, c)

    def hidden(self, batch: PaddedPairs) -> Tensor:
        """Words that are said, pair by pair."""
        source = F.linear(self.lookup(self.embed_source, batch.source), self.encoder_W, self.encoder_b)
        told = F.linear(self.lookup(self.embed_target, batch.told), self.decoder_W, self.decoder_b)
        h = c = source.new_zeros(source.shape[1], self.dim)
        for gates, there in zip(source.unbind(), batch.there.unbind(), strict=True):
            h, c = self.masked_step(gates, h, c, self.encoder_U, there)
        hs = []
        for gates in told.unbind():
            h, c = self.step(gates, h, c, self.decoder_U)
            hs.append(h)
        return torch.stack(hs).view(-1, self.dim).index_select(0, batch.places)


def _padded(sequences: Sequence[np.ndarray]) -> np.ndarray:
    """[positions, sequences]; a sequence's last word once more where it has ended, so that no other word is read."""
    found = np.empty((max(map(len, sequences)), len(sequences)), np.int64)
    for number, sequence in enumerate(sequences):
        found[: len(sequence), number] = sequence
        found[len(sequence) :, number] = sequence[-1]
    return found
