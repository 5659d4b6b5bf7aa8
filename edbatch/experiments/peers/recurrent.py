"""Sequences in PyTorch: packed for the library's LSTMs, and by position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from edbatch.experiments.peers.peer import Peer, lstm_cell

_LSTM = re.compile(r"(.*?)(\d*)\.([WUb])")  # a parameter of an LSTM of `edbatch.models`: its name, the layer, which


class Order(NamedTuple):
    """Sequences by position: the first entries of all, the second, ...; the longest sequence first.

    Attributes:
        longest: the sequences, the longest first.
        sizes: how many have a first entry, a second, ...
        at: where each entry goes, in the order of `longest`.
        reverse: which entry stands where, if every sequence is reversed; its own inverse.
    """

    longest: np.ndarray
    sizes: np.ndarray
    at: np.ndarray
    reverse: np.ndarray

    def put(self, entries: Sequence[np.ndarray]) -> np.ndarray:
        """The entries of all sequences in this order."""
        found = np.empty(len(self.at), np.int64)
        found[self.at] = np.concatenate([entries[i] for i in self.longest])
        return found


def by_position(lengths: np.ndarray) -> Order:
    """The order of sequences of these lengths."""
    longest = np.argsort(-lengths, kind="stable")
    ordered = lengths[longest]
    sequence = np.repeat(np.arange(len(ordered)), ordered)
    position = np.arange(len(sequence)) - np.repeat(np.cumsum(ordered) - ordered, ordered)
    sizes = np.bincount(position)
    first = np.cumsum(sizes) - sizes
    at = first[position] + sequence
    reverse = np.empty(len(sequence), np.int64)
    reverse[at] = first[ordered[sequence] - 1 - position] + sequence
    return Order(longest, sizes, at, reverse)


class LibraryLSTMs(Peer):
    """Every LSTM is a `torch.nn.LSTM` (cuDNN's, on a GPU). It has two biases; the second is zero and stays so."""

    GATES = (0, 1, 3, 2)  # input, forget, output, update <-> input, forget, update, output
    ENDS = (("W", "weight_ih"), ("U", "weight_hh"), ("b", "bias_ih"))

    def __init__(self, model: Any, device: str = "cpu", compiled: bool = False) -> None:
        super().__init__(model, device, compiled)
        for name in dict.fromkeys(found[1] for found in map(_LSTM.fullmatch, self.recurrent) if found):
            setattr(self, name, self._module(name))

    def _module(self, name: str) -> nn.LSTM:
        values = {found[2]: value for key, value in self.recurrent.items()
                  if (found := _LSTM.fullmatch(key)) and found[1] == name and found[3] == "W"}  # fmt: skip
        (gates, input_dim), dtype = next(iter(values.values())).shape, next(iter(values.values())).dtype
        lstm = nn.LSTM(input_dim, gates // 4, len(values), device=self.device, dtype=dtype)
        with torch.no_grad():
            for number, layer in enumerate(values):
                for end, theirs in self.ENDS:
                    value = self.recurrent[f"{name}{layer}.{end}"]
                    getattr(lstm, f"{theirs}_l{number}").copy_(self._reordered(value))
                getattr(lstm, f"bias_hh_l{number}").zero_().requires_grad_(False)
        return lstm

    def _reordered(self, value: Tensor) -> Tensor:
        parts = value.chunk(4)
        return torch.cat([parts[gate] for gate in self.GATES])

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the LSTMs are its modules'."""
        self.recurrent = {name: value for name, value in values.items() if _LSTM.fullmatch(name)}
        return {name: value for name, value in values.items() if name not in self.recurrent}

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Our names, our order of gates."""
        found = {name: value for name, value in values.items() if "." not in name}
        for key in self.recurrent:
            name = _LSTM.fullmatch(key)
            assert name
            theirs = f"{name[1]}.{dict(self.ENDS)[name[3]]}_l{name[2] or 0}"
            found[key.replace(".", "_")] = self._reordered(values[theirs])
        return found


class BothWays(Peer):
    """LSTMs from the left and from the right with one batched product for both, position by position."""

    compilable: tuple[str, ...] = ("step",)
    WAYS = ("right", "left")

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The two ways beside one another: `both0_W` of right0.W and left0.W, `spell_both_W` of spell_right.W, ..."""
        found = {}
        self.pairs: dict[str, tuple[str, str]] = {}
        for name, value in values.items():
            if not _LSTM.fullmatch(name):
                found[name] = value
            elif self.WAYS[0] in name:
                names = name, name.replace(*self.WAYS)
                key = name.replace(self.WAYS[0], "both").replace(".", "_")
                self.pairs[key] = (names[0].replace(".", "_"), names[1].replace(".", "_"))
                found[key] = torch.stack([values[one] for one in names])
        return found

    def original(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """One way after the other."""
        found: dict[str, Tensor] = {}
        for name, value in values.items():
            found |= zip(self.pairs.get(name, (name,)), value if name in self.pairs else (value,), strict=True)
        return found

    def step(self, gates: Tensor, h: Tensor, c: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        """States [2, n, dim] after one position; gates [2, n, 4 dim] are what the inputs give."""
        return lstm_cell(torch.baddbmm(gates, h, U.transpose(1, 2)), c)

    def _first(self, state: Tensor, n: int) -> Tensor:
        """The states of the sequences that go on; copied for compiled code, which else is compiled again and again."""
        if n == state.shape[1]:
            return state
        return state[:, :n].contiguous() if self.compiled else state[:, :n]

    def read(self, x: Tensor, sizes: Sequence[int], layer: str) -> list[Tensor]:
        """Outputs [2, n, dim] at every position, of inputs x [2, entries, input dim] in the order of positions."""
        W, U, b = (getattr(self, f"{layer}_{name}") for name in "WUb")
        gates = torch.baddbmm(b[:, None], x, W.transpose(1, 2))
        h = c = x.new_zeros(2, sizes[0], U.shape[2])
        hs = []
        for begin, end in pairwise(np.cumsum([0, *sizes]).tolist()):
            h, c = (self._first(state, end - begin) for state in (h, c))
            h, c = self.step(gates[:, begin:end], h, c, U)
            hs.append(h)
        return hs


def last_outputs(hs: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Of every sequence its last output [2, sequences, dim], from those at every position."""
    ends = [h[:, after:] for h, size, after in zip(hs, sizes, [*sizes[1:], 0], strict=True) if size > after]
    return torch.cat(ends[::-1], 1)
