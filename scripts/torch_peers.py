"""The TreeLSTM of `edbatch.models`, with the same parameters, in PyTorch: per sample, and batched by hand.

Both are written as fast as they can be while they stay what they are, so that EdBatch is compared with the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import edbatch as eb


class TreeSample(NamedTuple):
    """A binary tree in post-order, as `edbatch.models.TreeLSTM.loss` takes it."""

    words: Sequence[int | None]
    children: Sequence[tuple[int, ...]]
    labels: Sequence[int]


class Peer(nn.Module):
    """What both peers have in common: parameters, equations, optimizer.

    Args:
        model: of an `edbatch.models.TreeLSTM`; its parameters are copied.
    """

    def __init__(self, model: eb.ParameterCollection) -> None:
        super().__init__()
        for parameter in model:
            self.register_parameter(parameter.name, nn.Parameter(torch.from_numpy(parameter.value())))
        self.dim = model["embed"].shape[1]

    def leaf(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden and cell states [n, dim] of words whose embeddings are x [n, dim]."""
        gates = F.linear(x, self.W, self.b_leaf)
        i, o = torch.sigmoid(gates[:, : 2 * self.dim]).chunk(2, 1)
        c = i * torch.tanh(gates[:, 2 * self.dim :])
        return o * torch.tanh(c), c

    def compose(self, h: Tensor, c1: Tensor, c2: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden and cell states [n, dim]; h [n, 2 dim] is the children's hidden states side by side."""
        gates = F.linear(h, self.U, self.b)
        i, o, f1, f2 = torch.sigmoid(gates[:, : 4 * self.dim]).chunk(4, 1)
        c = i * torch.tanh(gates[:, 4 * self.dim :]) + f1 * c1 + f2 * c2
        return o * torch.tanh(c), c

    def lookup(self, words: Tensor) -> Tensor:
        """Embeddings; their gradient is sparse, so that an update costs what was looked up."""
        return F.embedding(words, self.embed, sparse=True)

    def cross_entropies(self, h: Tensor, labels: Tensor) -> Tensor:
        """Their sum over all nodes."""
        return F.cross_entropy(F.linear(h, self.W_out, self.b_out), labels, reduction="sum")

    def optimizers(self, lr: float, eps: float = 1e-8) -> list[torch.optim.Optimizer]:
        """Adam as `edbatch.Adam` has it: of the table, only the rows that were looked up.

        But for one thing: `SparseAdam` adds eps before it corrects the bias, not after.
        """
        dense = [parameter for name, parameter in self.named_parameters() if name != "embed"]
        return [
            torch.optim.Adam(dense, lr=lr, eps=eps, fused=True),
            torch.optim.SparseAdam([self.embed], lr=lr, eps=eps),
        ]


class PerSample(Peer):
    """The natural module: recursion over one tree. Its look-ups and its classifier run once per tree."""

    def prepare(self, sample: TreeSample) -> Any:
        """What is known before training begins."""
        words = torch.tensor([word for word in sample.words if word is not None])
        return words, sample.words, sample.children, torch.tensor(sample.labels)

    def loss(self, prepared: Sequence[Any]) -> Tensor:
        """The sum over a mini-batch."""
        return torch.stack([self.of_tree(*one) for one in prepared]).sum()

    def of_tree(
        self, leaves: Tensor, words: Sequence[int | None], children: Sequence[tuple[int, ...]], labels: Tensor
    ) -> Tensor:
        """The sum over all nodes of a tree."""
        xs = iter(self.lookup(leaves).split(1))
        found: list[tuple[Tensor, Tensor]] = []
        for word, below in zip(words, children, strict=True):  # post-order: what recursion does, without its calls
            if word is not None:
                found.append(self.leaf(next(xs)))
            else:
                (h1, c1), (h2, c2) = found[below[0]], found[below[1]]
                found.append(self.compose(torch.cat([h1, h2], 1), c1, c2))
        return self.cross_entropies(torch.cat([h for h, _ in found]), labels)


class Prepared(NamedTuple):
    """Of one tree, per node: depth, word (-1 inside the tree), label, and the order in which its parent takes it."""

    depth: np.ndarray
    word: np.ndarray
    label: np.ndarray
    order: np.ndarray


class ByLevel(Peer):
    """Batched by hand: all leaves at once, then all inner nodes of one depth of all trees at once, the deepest first.

    The children of a depth's nodes are all nodes of the next depth, each once: the states of one depth, in another
    order, are what the next batch reads, and nothing is kept or copied that is not needed. The classifier runs once.
    """

    def prepare(self, sample: TreeSample) -> Prepared:
        """What is known before training begins."""
        n = len(sample.words)
        depth, order, root = np.zeros(n, np.int64), np.zeros(n, np.int64), n - 1
        todo, number = [root], 0
        while todo:  # breadth first: the children of one depth in the order of their parents
            below = []
            for node in todo:
                order[node] = number
                number += 1
                below += sample.children[node]
                depth[list(sample.children[node])] = depth[node] + 1
            todo = below
        word = np.array([-1 if word is None else word for word in sample.words])
        return Prepared(depth, word, np.array(sample.labels), order)

    def batch(self, prepared: Sequence[Prepared]) -> tuple[Tensor, list[int], list[int], list[Tensor], Tensor]:
        """Indices of one mini-batch.

        Returns:
            Words of all leaves by depth, the deepest first; leaves per depth; inner nodes per depth; per depth where
            the next batch finds its operands in (inner nodes, leaves); labels of (leaves, inner nodes) in this order.
        """
        depth = np.concatenate([one.depth for one in prepared])
        word = np.concatenate([one.word for one in prepared])
        tree = np.repeat(np.arange(len(prepared)), [len(one.depth) for one in prepared])
        order = np.lexsort((np.concatenate([one.order for one in prepared]), tree, -depth))
        label = np.concatenate([one.label for one in prepared])[order]
        is_leaf, depth = word[order] >= 0, depth[order]
        levels = int(depth[0]) + 1
        leaves = np.bincount(depth[is_leaf], minlength=levels)[::-1]
        inner = np.bincount(depth[~is_leaf], minlength=levels)[::-1]
        # The position of a node in (inner nodes, leaves) of its depth.
        rank_inner, rank_leaf = np.cumsum(~is_leaf) - 1, np.cumsum(is_leaf) - 1
        first_inner = np.repeat(np.cumsum(inner) - inner, inner + leaves)
        first_leaf = np.repeat(np.cumsum(leaves) - leaves, inner + leaves)
        at = np.where(is_leaf, rank_leaf - first_leaf + np.repeat(inner, inner + leaves), rank_inner - first_inner)
        places = list(torch.from_numpy(at).split((inner + leaves).tolist()))
        words = torch.from_numpy(word[order][is_leaf])
        labels = torch.from_numpy(np.concatenate([label[is_leaf], label[~is_leaf]]))
        return words, leaves.tolist(), inner.tolist(), places, labels

    def loss(self, prepared: Sequence[Prepared]) -> Tensor:
        """The sum over a mini-batch."""
        words, leaves, inner, places, labels = self.batch(prepared)
        h_leaf, c_leaf = self.leaf(self.lookup(words))
        hs = [h_leaf]
        h = c = h_leaf[:0]
        for h_new, c_new, n, above, place in zip(
            h_leaf.split(leaves), c_leaf.split(leaves), inner, [*inner[1:], 0], places, strict=True
        ):
            if n and len(h_new):
                h, c = torch.cat([h, h_new]), torch.cat([c, c_new])
            elif len(h_new):
                h, c = h_new, c_new
            if above:
                c = c.index_select(0, place)
                h, c = self.compose(h.index_select(0, place).view(-1, 2 * self.dim), c[::2], c[1::2])
                hs.append(h)
        return self.cross_entropies(torch.cat(hs), labels)
