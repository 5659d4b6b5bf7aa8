"""The equations of TreeRNN and RNTN in PyTorch, each per sample and by level."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.experiments.peers.trees import State, TreeByLevel, TreePeer, TreePerSample


class _TreeRNN(TreePeer):
    compilable: tuple[str, ...] = ("compose",)

    def inputs(self, words: Tensor) -> State:
        """Embeddings [n, dim]."""
        return (self.lookup(self.embed, words),)

    def leaf(self, x: Tensor) -> State:
        """A word is its embedding."""
        return (x,)

    @staticmethod
    def of_two(left: State, right: State) -> State:
        """Beside one another."""
        return (torch.cat([left[0], right[0]], 1),)

    @staticmethod
    def of_pairs(pairs: State) -> State:
        """The same without a copy."""
        return (pairs[0].view(len(pairs[0]) // 2, -1),)

    def compose(self, both: Tensor) -> State:
        """Vectors [n, dim] over the children's [n, 2 dim]."""
        return (torch.tanh(F.linear(both, self.W, self.b)),)


class TreeRNNPerSample(TreePerSample, _TreeRNN):
    """TreeRNN, node by node."""


class TreeRNNByLevel(TreeByLevel, _TreeRNN):
    """TreeRNN, level by level."""


class _RNTN(_TreeRNN):
    def compose(self, both: Tensor) -> State:
        """Vectors [n, dim] over the children's [n, 2 dim]: one product makes V [a; b] of all entries."""
        matrices = F.linear(both, self.V).view(len(both), self.dim, -1)
        bilinear = torch.bmm(matrices, both.unsqueeze(2)).squeeze(2)
        return (torch.tanh(bilinear + F.linear(both, self.W, self.b)),)


class RNTNPerSample(TreePerSample, _RNTN):
    """RNTN, node by node."""


class RNTNByLevel(TreeByLevel, _RNTN):
    """RNTN, level by level."""
