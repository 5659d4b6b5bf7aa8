"""The BiLSTM taggers and the encoder-decoder in PyTorch, batched by hand: packed for the library's LSTMs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from scripts.peers.peer import Peer, uploaded

_LSTM = re.compile(r"(.*?)(\d*)\.([WUb])")  # a parameter of an LSTM of `edbatch.models`: its name, the layer, which
_ENDS = {"W": "weight_ih", "U": "weight_hh", "b": "bias_ih"}
START = 1  # what `edbatch.models.EncoderDecoder` begins every sentence with


class Order(NamedTuple):
    """Sequences by position: the first entries of all, the second, ...; the longest sequence first.

    Attributes:
        rank: of each sequence, by length.
        sizes: how many have a first entry, a second, ...
        at: where each entry goes.
        reverse: which entry stands where, if every sequence is reversed; its own inverse.
    """

    rank: np.ndarray
    sizes: np.ndarray
    at: np.ndarray
    reverse: np.ndarray

    def put(self, entries: np.ndarray) -> np.ndarray:
        """The entries of all sequences in this order."""
        found = np.empty(len(self.at), np.int64)
        found[self.at] = entries
        return found


def by_position(lengths: np.ndarray) -> Order:
    """The order of sequences of these lengths."""
    rank = np.empty(len(lengths), np.int64)
    rank[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(sequence)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sizes = np.bincount(position)
    first = np.cumsum(sizes) - sizes
    at = first[position] + rank[sequence]
    reverse = np.empty(len(sequence), np.int64)
    reverse[at] = first[lengths[sequence] - 1 - position] + rank[sequence]
    return Order(rank, sizes, at, reverse)


class LibraryLSTMs(Peer):
    """Every LSTM is a `torch.nn.LSTM` (cuDNN's, on a GPU). It has two biases; the second is zero and stays so."""

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of LSTMs by the library's names, in its order of gates: input, forget, update, output."""
        found = {}
        for name, value in values.items():
            if match := _LSTM.fullmatch(name):
                i, f, o, u = value.chunk(4)
                name, value = f"{match[1]}.{_ENDS[match[3]]}_l{match[2] or 0}", torch.cat([i, f, u, o])
            found[name] = value
        return found

    def add_layers(self, values: dict[str, Tensor]) -> None:
        """A module for each LSTM."""
        for name in [name for name in values if name.endswith("weight_ih_l0")]:
            (gates, inputs), layer = values[name].shape, name.partition(".")[0]
            layers = sum(other.startswith(f"{layer}.weight_ih") for other in values)
            dtype = values[name].dtype
            setattr(self, layer, nn.LSTM(inputs, gates // 4, layers, device=self.device, dtype=dtype))
            for number in range(layers):
                getattr(getattr(self, layer), f"bias_hh_l{number}").detach_().zero_()


class Words(NamedTuple):
    """Indices of a mini-batch of sentences, by position.

    Attributes:
        sizes: how many sentences have a first word, a second, ...
        words: those that are looked up.
        reverse: where each word stands if every sentence is reversed; its own inverse.
        spelled: of words that are read by their characters these, as `Words`, and where all words are among those that
            are looked up and those that are read; None: there are none.
        tags: of all words.
    """

    sizes: Tensor
    words: Tensor
    reverse: Tensor
    spelled: tuple[Words, Tensor] | None
    tags: Tensor


class Tagger(LibraryLSTMs):
    """The library's LSTMs over packed sequences: nothing is padded."""

    def prepare(self, sample: Any) -> Any:
        """Words (-1: spelled), the characters of every word that is spelled, tags."""
        (words,) = sample.inputs
        spelled = [np.array(word) for word in words if isinstance(word, Sequence)]
        numbers = [-1 if isinstance(word, Sequence) else word for word in words]
        return np.array(numbers), spelled, np.array(sample.right)

    def batch(self, prepared: Sequence[Any]) -> Words:
        """Words by position."""
        order = by_position(np.array([len(words) for words, *_ in prepared]))
        words, tags = (order.put(np.concatenate([one[at] for one in prepared])) for at in (0, 2))
        spelled, known = [word for one in prepared for word in one[1]], words >= 0
        read = None
        if spelled:
            of_word = by_position(np.array(list(map(len, spelled))))
            place = np.cumsum(known) - 1
            place[order.at[~known[order.at]]] = known.sum() + of_word.rank
            characters = of_word.put(np.concatenate(spelled))
            characters, reverse, places = uploaded([characters, of_word.reverse, place], self.device)
            read = Words(torch.tensor(of_word.sizes), characters, reverse, None, places), places
        words, reverse, tags = uploaded([words[known], order.reverse, tags], self.device)
        return Words(torch.tensor(order.sizes), words, reverse, read, tags)

    def ways(self, name: str, x: Tensor, batch: Words) -> list[tuple[PackedSequence, Any]]:
        """What LSTMs from the left and from the right make of x."""
        sizes = batch.sizes  # on the CPU, as the library asks
        return [
            getattr(self, f"{name}right")(PackedSequence(x, sizes)),
            getattr(self, f"{name}left")(PackedSequence(x.index_select(0, batch.reverse), sizes)),
        ]

    def hidden(self, batch: Words) -> Tensor:
        """Words by position."""
        x = self.lookup(self.embed, batch.words)
        if batch.spelled is not None:
            words, places = batch.spelled
            last = [h[0] for _, (h, _) in self.ways("spell_", self.lookup(self.characters, words.words), words)]
            x = torch.cat([x, torch.cat(last, 1)]).index_select(0, places)
        right, left = (found.data for found, _ in self.ways("", x, batch))
        both = torch.cat([right, left.index_select(0, batch.reverse)], 1)
        return torch.tanh(F.linear(both, self.W_hidden, self.b_hidden))


class Pairs(NamedTuple):
    """Indices of one mini-batch, sources and targets each by position, the longest first.

    Attributes:
        source_sizes, told_sizes: how many have a first word, a second, ...
        longest: of the targets, in their order, which source it is of, in that of the sources.
        source, told, said: in these orders.
    """

    source_sizes: Tensor
    told_sizes: Tensor
    longest: Tensor
    source: Tensor
    told: Tensor
    said: Tensor


class Translation(LibraryLSTMs):
    """The library's LSTMs over packed sequences; scores of words that are there, and no others."""

    def prepare(self, sample: Any) -> Any:
        """What is read, what the decoder is told, what it is to say."""
        source, target = sample.inputs
        return np.array(source), np.array([START, *target]), np.array(sample.right)

    def batch(self, prepared: Sequence[Any]) -> Pairs:
        """Words by position."""
        (source, lengths), (told, of_told), (said, _) = (
            (np.concatenate(of), np.array(list(map(len, of)))) for of in zip(*prepared, strict=True)
        )
        first, second = by_position(lengths), by_position(of_told)
        rank = np.empty(len(prepared), np.int64)
        rank[second.rank] = first.rank
        tensors = uploaded([rank, first.put(source), second.put(told), second.put(said)], self.device)
        return Pairs(torch.tensor(first.sizes), torch.tensor(second.sizes), *tensors)

    def hidden(self, batch: Pairs) -> Tensor:
        """Words that are said, by position."""
        source = PackedSequence(self.lookup(self.embed_source, batch.source), batch.source_sizes)
        h, c = (of.index_select(1, batch.longest) for of in self.encoder(source)[1])
        told = PackedSequence(self.lookup(self.embed_target, batch.told), batch.told_sizes)
        return self.decoder(told, (h, c))[0].data


PEERS: dict[str, dict[str, type[Peer]]] = {
    "tagger": {"by hand": Tagger},
    "tagger-characters": {"by hand": Tagger},
    "encoder-decoder": {"by hand": Translation},
}
