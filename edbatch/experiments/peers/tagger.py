"""The BiLSTM tagger of `edbatch.models` in PyTorch: per sample, packed for cuDNN's LSTM, and batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from edbatch.experiments.peers.peer import Peer, PerSample, lstm_cell, uploaded

WAYS = ("right", "left")


class TaggedSample(NamedTuple):
    """A sentence, as `edbatch.models.BiLSTMTagger.loss` takes it."""

    words: Sequence[int]
    tags: Sequence[int]


class _Tagger(Peer):
    def prepare(self, sample: TaggedSample) -> tuple[np.ndarray, np.ndarray]:
        """Words and tags."""
        return np.array(sample.words), np.array(sample.tags)

    def perceptron(self, right: Tensor, left: Tensor) -> Tensor:
        """The hidden layer over the outputs of reading from either side."""
        return torch.tanh(F.linear(torch.cat([right, left], 1), self.W_hidden, self.b_hidden))


class _LibraryLSTM(_Tagger):
    """Both ways are a `torch.nn.LSTM` (cuDNN's, on a GPU). It has two biases; the second is zero and stays so."""

    GATES = (0, 1, 3, 2)  # input, forget, output, update <-> input, forget, update, output

    def __init__(self, model: Any, device: str = "cpu", compiled: bool = False) -> None:
        super().__init__(model, device, compiled)
        layers = 1 + max(int(name[len(WAYS[0]) : -2]) for name in self.recurrent if name.startswith(WAYS[0]))
        for way in WAYS:
            dtype = self.recurrent[f"{way}0.W"].dtype
            lstm = nn.LSTM(self.dim, self.dim, layers, device=self.device, dtype=dtype)
            with torch.no_grad():
                for layer in range(layers):
                    for name, end in (("W", "weight_ih"), ("U", "weight_hh"), ("b", "bias_ih")):
                        value = self.recurrent[f"{way}{layer}.{name}"]
                        getattr(lstm, f"{end}_l{layer}").copy_(self._reordered(value))
                    getattr(lstm, f"bias_hh_l{layer}").zero_().requires_grad_(False)
            setattr(self, way, lstm)

    def _reordered(self, value: Tensor) -> Tensor:
        parts = value.chunk(4)
        return torch.cat([parts[gate] for gate in self.GATES])

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the LSTMs are its modules'."""
        self.recurrent = {name: value for name, value in values.items() if name.startswith(WAYS)}
        return {name: value for name, value in values.items() if name not in self.recurrent}

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Our names, our order of gates."""
        found = {name: value for name, value in values.items() if not name.startswith(WAYS)}
        for name in self.recurrent:
            way = next(way for way in WAYS if name.startswith(way))
            end = {"W": "weight_ih", "U": "weight_hh", "b": "bias_ih"}[name[-1]]
            layer = name.removeprefix(way)[:-2]
            found[name.replace(".", "_")] = self._reordered(values[f"{way}.{end}_l{layer}"])
        return found


class TaggerPerSample(PerSample, _LibraryLSTM):
    """One sentence after the other through the library's LSTMs."""

    def batch(self, prepared: Sequence[Any]) -> list[Any]:
        """Words and tags go over at once."""
        tensors = iter(uploaded([array for one in prepared for array in one], self.device))
        return [(next(tensors), next(tensors)) for _ in prepared]

    def of_sample(self, one: Any) -> Tensor:
        """One hidden state per word."""
        x = self.lookup(self.embed, one[0])
        return self.perceptron(self.right(x)[0], self.left(x.flip(0))[0].flip(0))


class Packed(NamedTuple):
    """Indices of one mini-batch: the first words of all sentences, the second, ...; the longest sentence first.

    Attributes:
        sizes: how many sentences have a first word, a second, ...
        words: in this order.
        reverse: where each word stands if every sentence is reversed; its own inverse.
        tags: in this order.
    """

    sizes: list[int]
    words: Tensor
    reverse: Tensor
    tags: Tensor


class _ByPosition(_Tagger):
    def batch(self, prepared: Sequence[Any]) -> Packed:
        """Words by position."""
        lengths = np.array([len(words) for words, _ in prepared])
        longest = np.argsort(-lengths, kind="stable")
        ordered = lengths[longest]
        sentence = np.repeat(np.arange(len(ordered)), ordered)
        position = np.arange(len(sentence)) - np.repeat(np.cumsum(ordered) - ordered, ordered)
        sizes = np.bincount(position)
        first = np.cumsum(sizes) - sizes
        words, tags, reverse = (np.empty(len(sentence), np.int64) for _ in range(3))
        at = first[position] + sentence
        words[at] = np.concatenate([prepared[i][0] for i in longest])
        tags[at] = np.concatenate([prepared[i][1] for i in longest])
        reverse[at] = first[ordered[sentence] - 1 - position] + sentence
        return Packed(sizes.tolist(), *uploaded([words, reverse, tags], self.device))


class TaggerPacked(_ByPosition, _LibraryLSTM):
    """The library's LSTMs over packed sequences: nothing is padded."""

    def hidden(self, batch: Packed) -> Tensor:
        """Words by position."""
        x = self.lookup(self.embed, batch.words)
        sizes = torch.tensor(batch.sizes)  # on the CPU, as the library asks
        right = self.right(PackedSequence(x, sizes))[0].data
        left = self.left(PackedSequence(x.index_select(0, batch.reverse), sizes))[0].data
        return self.perceptron(right, left.index_select(0, batch.reverse))


class TaggerByPosition(_ByPosition):
    """Batched by hand: at every position both ways at once; products with the inputs of all positions before that."""

    compilable = ("step", "perceptron")

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The two ways beside one another: W0, U0, b0, W1, ..."""
        found = {name: value for name, value in values.items() if not name.startswith(WAYS)}
        for name in values:
            if name.startswith(WAYS[0]):
                both = [values[way + name.removeprefix(WAYS[0])] for way in WAYS]
                found[name[-1] + name[len(WAYS[0]) : -2]] = torch.stack(both)
        self.layers = sum(name.startswith("U") for name in found)
        return found

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """One way after the other."""
        found: dict[str, Tensor] = {}
        for name, value in values.items():
            if name[1:].isdigit():
                found |= {f"{way}{name[1:]}_{name[0]}": part for way, part in zip(WAYS, value, strict=True)}
            else:
                found[name] = value
        return found

    def step(self, gates: Tensor, h: Tensor, c: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """States [2, n, dim] after one position; gates [2, n, 4 dim] are what the inputs give."""
        return lstm_cell(torch.baddbmm(gates, h, U.transpose(1, 2)), c)

    def first(self, state: Tensor, n: int) -> Tensor:
        """The states of the sentences that go on; copied for compiled code, which else is compiled again and again."""
        if n == state.shape[1]:
            return state
        return state[:, :n].contiguous() if self.compiled else state[:, :n]

    def hidden(self, batch: Packed) -> Tensor:
        """Words by position."""
        x = self.lookup(self.embed, batch.words)
        x = torch.stack([x, x.index_select(0, batch.reverse)])
        ends = np.cumsum([0, *batch.sizes]).tolist()
        for layer in range(self.layers):
            W, U, b = (getattr(self, f"{name}{layer}") for name in "WUb")
            gates = torch.baddbmm(b[:, None], x, W.transpose(1, 2))
            h, c = x.new_zeros(2, 2, batch.sizes[0], self.dim)
            hs = []
            for begin, end in pairwise(ends):
                h, c = (self.first(state, end - begin) for state in (h, c))
                h, c = self.step(gates[:, begin:end], h, c, U)
                hs.append(h)
            x = torch.cat(hs, 1)
        return self.perceptron(x[0], x[1].index_select(0, batch.reverse))
