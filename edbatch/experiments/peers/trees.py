"""The TreeLSTM of `edbatch.models` in PyTorch: per sample, and batched by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.experiments.peers.peer import Peer, PerSample, uploaded


class TreeSample(NamedTuple):
    """A binary tree in post-order, as `edbatch.models.TreeLSTM.loss` takes it."""

    words: Sequence[int | None]
    children: Sequence[tuple[int, ...]]
    labels: Sequence[int]


class _TreeLSTM(Peer):
    """The equations."""

    compilable = ("leaf", "compose")

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


class TreePerSample(PerSample, _TreeLSTM):
    """The natural module: recursion over one tree. Its look-ups and its classifier run once per tree."""

    def prepare(self, sample: TreeSample) -> Any:
        """Words of leaves, and the labels."""
        words = np.array([word for word in sample.words if word is not None])
        return sample.words, sample.children, words, np.array(sample.labels)

    def batch(self, prepared: Sequence[Any]) -> list[Any]:
        """Words and labels go over at once."""
        tensors = iter(uploaded([array for one in prepared for array in one[2:]], self.device))
        return [(words, children, next(tensors), next(tensors)) for words, children, *_ in prepared]

    def of_sample(self, one: Any) -> Tensor:
        """Hidden states of all nodes of a tree."""
        words, children, leaves, _ = one
        xs = iter(self.lookup(self.embed, leaves).split(1))
        found: list[tuple[Tensor, Tensor]] = []
        for word, below in zip(words, children, strict=True):  # post-order: what recursion does, without its calls
            if word is not None:
                found.append(self.leaf(next(xs)))
            else:
                (h1, c1), (h2, c2) = found[below[0]], found[below[1]]
                found.append(self.compose(torch.cat([h1, h2], 1), c1, c2))
        return torch.cat([h for h, _ in found])


class _Prepared(NamedTuple):
    """Of one tree, per node: depth, word (-1 inside the tree), label, and the order in which its parent takes it."""

    depth: np.ndarray
    word: np.ndarray
    label: np.ndarray
    order: np.ndarray


class TreeLevels(NamedTuple):
    """Indices of one mini-batch.

    Attributes:
        leaves, inner: how many there are per depth, the deepest first.
        places: per depth where the next batch finds its operands in (inner nodes, leaves).
        words: of all leaves by depth.
        labels: of (leaves, inner nodes) in this order.
    """

    leaves: list[int]
    inner: list[int]
    places: Sequence[Tensor]
    words: Tensor
    labels: Tensor


class TreeByLevel(_TreeLSTM):
    """Batched by hand: all leaves at once, then all inner nodes of one depth of all trees at once, the deepest first.

    The children of a depth's nodes are all nodes of the next depth, each once: the states of one depth, in another
    order, are what the next batch reads, and nothing is kept or copied that is not needed. The classifier runs once.
    """

    def prepare(self, sample: TreeSample) -> _Prepared:
        """Nodes in breadth-first order."""
        n = len(sample.words)
        depth, order, root = np.zeros(n, np.int64), np.zeros(n, np.int64), n - 1
        todo, number = [root], 0
        while todo:  # breadth first: the children of one depth in the order of their parents
            below: list[int] = []
            for node in todo:
                order[node] = number
                number += 1
                below += sample.children[node]
                depth[list(sample.children[node])] = depth[node] + 1
            todo = below
        word = np.array([-1 if word is None else word for word in sample.words])
        return _Prepared(depth, word, np.array(sample.labels), order)

    def batch(self, prepared: Sequence[_Prepared]) -> TreeLevels:
        """Levels of all trees."""
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
        labels = np.concatenate([label[is_leaf], label[~is_leaf]])
        places, words, labels = uploaded([at, word[order][is_leaf], labels], self.device)
        return TreeLevels(leaves.tolist(), inner.tolist(), places.split((inner + leaves).tolist()), words, labels)

    def hidden(self, batch: TreeLevels) -> Tensor:
        """Leaves, then inner nodes."""
        h_leaf, c_leaf = self.leaf(self.lookup(self.embed, batch.words))
        hs = [h_leaf]
        h = c = h_leaf[:0]
        for h_new, c_new, n, above, place in zip(
            h_leaf.split(batch.leaves), c_leaf.split(batch.leaves), batch.inner, [*batch.inner[1:], 0], batch.places,
            strict=True,
        ):  # fmt: skip
            if n and len(h_new):
                h, c = torch.cat([h, h_new]), torch.cat([c, c_new])
            elif len(h_new):
                h, c = h_new, c_new
            if above:
                c = c.index_select(0, place)
                h, c = self.compose(h.index_select(0, place).view(-1, 2 * self.dim), c[::2], c[1::2])
                hs.append(h)
        return torch.cat(hs)
