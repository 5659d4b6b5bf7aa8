"""Tree networks for ONE tree, with a softmax at every node, as one writes them in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import edbatch as eb
import edbatch.torch

State = tuple[Tensor, ...]  # of a node, the first is its hidden vector


class Tree(nn.Module):
    """What all have in common: a loop over the nodes, children before their parents."""

    embed: nn.Embedding
    leaf: Any  # from a word to a state
    compose: Any  # from the states of two children, one after the other

    def __init__(self, words: int, labels: int, dim: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, dim, sparse=True)
        self.add_layers(dim)
        self.classify = nn.Linear(dim, labels)

    def add_layers(self, dim: int) -> None:
        raise NotImplementedError

    def loss(self, h: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(self.classify(h), label)

    def forward(
        self, words: Sequence[Tensor | None], children: Sequence[tuple[int, ...]], labels: Sequence[Tensor]
    ) -> Tensor:
        states = list[State]()
        for word, below in zip(words, children, strict=True):
            if word is not None:
                states.append(self.leaf(word))
            else:
                left, right = below
                states.append(self.compose(*states[left], *states[right]))
        return torch.stack([self.loss(state[0], label) for state, label in zip(states, labels, strict=True)]).sum()


def of_word(gates: Tensor) -> State:
    """Hidden and cell state of a leaf."""
    i, o, u = gates.chunk(3)
    c = i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def of_pair(gates: Tensor, c1: Tensor, c2: Tensor) -> State:
    """Hidden and cell state of a node with two children."""
    i, o, f1, f2, u = gates.chunk(5)
    c = i.sigmoid() * u.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
    return o.sigmoid() * c.tanh(), c


class TreeLSTM(Tree):
    """All of it in one module; parameters are in the order of `edbatch.models.TreeLSTM`'s."""

    def add_layers(self, dim: int) -> None:
        self.W, self.U = nn.Linear(dim, 3 * dim), nn.Linear(2 * dim, 5 * dim)

    def leaf(self, word: Tensor) -> State:
        return of_word(self.W(self.embed(word)))

    def compose(self, h1: Tensor, c1: Tensor, h2: Tensor, c2: Tensor) -> State:
        return of_pair(self.U(torch.cat([h1, h2])), c1, c2)


class TwoCells(TreeLSTM):
    """Its nodes are cells."""

    leaf, compose = edbatch.torch.cell(TreeLSTM.leaf), edbatch.torch.cell(TreeLSTM.compose)


class ThreeCells(TwoCells):
    """Losses are, too."""

    loss = edbatch.torch.cell(TreeLSTM.loss)


class Leaf(nn.Module):
    """A leaf's layer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gates = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor) -> State:
        return of_word(self.gates(x))


class Pair(nn.Module):
    """That of a node with two children."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * dim, 5 * dim)

    def forward(self, h1: Tensor, c1: Tensor, h2: Tensor, c2: Tensor) -> State:
        return of_pair(self.gates(torch.cat([h1, h2])), c1, c2)


class Submodules(Tree):
    """A TreeLSTM whose nodes are submodules."""

    def add_layers(self, dim: int) -> None:
        self.of_word, self.compose = Leaf(dim), Pair(dim)

    def leaf(self, word: Tensor) -> State:
        return self.of_word(self.embed(word))


class Deep(Tree):
    """The same layers at every node."""

    def add_layers(self, dim: int) -> None:
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim), nn.Linear(dim, dim))

    def leaf(self, word: Tensor) -> State:
        return (self.layers(self.embed(word)),)

    def compose(self, left: Tensor, right: Tensor) -> State:
        return (self.layers(left + right),)


def copy_parameters(module: nn.Module, model: eb.ParameterCollection) -> None:
    """Give a module the values of a model's parameters, in their order."""
    for theirs, ours in zip(module.parameters(), model, strict=True):
        theirs.data = torch.tensor(ours.value())
