"""TreeLSTM, TreeLSTM-2Type, TreeGRU and MV-RNN in PyTorch: node by node, and batched by hand, level by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from edbatch.models.tree_lstm_variants import node_types
from scripts.peers.peer import Peer, uploaded

State = tuple[Tensor, ...]  # of nodes, the first is their hidden vectors


class Prepared(NamedTuple):
    """Of one tree, per node: depth, 0 for a leaf and else 1 + its kind, word, children, label."""

    depth: np.ndarray
    group: np.ndarray
    words: np.ndarray
    children: np.ndarray
    labels: np.ndarray


class Levels(NamedTuple):
    """Indices of one mini-batch.

    Attributes:
        counts: per depth, the deepest first, how many leaves there are, and inner nodes of each kind, in this order.
        places: per depth where the children of its inner nodes are in the depth below.
        words: of all leaves by depth.
        labels: of leaves, then of inner nodes, by depth.
    """

    counts: list[list[int]]
    places: Sequence[Tensor]
    words: Tensor
    labels: Tensor


class TreePeer(Peer):
    """Batched by hand: all leaves at once, then all inner nodes of one depth of all trees at once, the deepest first.

    The children of a depth's nodes are the nodes of the next depth: the states of one depth are all that the next batch
    reads, and nothing is kept or copied that is not needed. The classifier runs once.
    """

    composers: tuple[str, ...] = ("compose",)  # of every kind of node, what makes its state

    def inputs(self, words: Tensor) -> State:
        """What is looked up of words."""
        return (self.lookup(self.embed, words),)

    def leaf(self, *inputs: Tensor) -> State:
        """The state of leaves."""
        raise NotImplementedError

    def of_pairs(self, pairs: State) -> State:
        """What composers take, of states [2 n, ...] in which the two children of a node follow one another."""
        return (pairs[0].view(len(pairs[0]) // 2, -1),)

    def of_two(self, left: State, right: State) -> State:
        """The same of the states [1, ...] of one left child and of one right child."""
        return (torch.cat([left[0], right[0]], 1),)

    def kinds(self, words: Sequence[int | None]) -> Sequence[int]:
        """Per node its kind; that of a leaf means nothing."""
        return [0] * len(words)

    def prepare(self, sample: Any) -> Prepared:
        """Its nodes as arrays."""
        words, children = sample.inputs
        depth = np.zeros(len(words), np.int64)
        for node in reversed(range(len(words))):  # parents are after their children
            depth[list(children[node])] = depth[node] + 1
        leaf = np.array([word is not None for word in words])
        group = np.where(leaf, 0, 1 + np.array(self.kinds(words)))
        words, children = [word or 0 for word in words], [below or (0, 0) for below in children]
        return Prepared(depth, group, np.array(words), np.array(children), np.array(sample.right))

    def batch(self, prepared: Sequence[Prepared]) -> Levels:
        """Levels of all trees."""
        depth, group, words, children, labels = (np.concatenate(of) for of in zip(*prepared, strict=True))
        sizes = [len(one.depth) for one in prepared]
        children += np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)[:, None]
        level, kinds = depth.max() - depth, 1 + len(self.composers)
        place = level * kinds + group
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=(level.max() + 1) * kinds).reshape(-1, kinds)
        first = np.cumsum(counts.sum(1)) - counts.sum(1)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order)) - first[level[order]]
        is_leaf = group[order] == 0
        leaves, inner = order[is_leaf], order[~is_leaf]
        arrays = [position[children[inner]].ravel(), words[leaves], labels[np.concatenate([leaves, inner])]]
        places, leaf_words, ordered = uploaded(arrays, self.device)
        return Levels(counts.tolist(), places.split((2 * counts[:, 1:].sum(1)).tolist()), leaf_words, ordered)

    def hidden(self, batch: Levels) -> Tensor:
        """Leaves, then inner nodes."""
        leaves = self.leaf(*self.inputs(batch.words))
        new = zip(*(of.split([counts[0] for counts in batch.counts]) for of in leaves), strict=True)
        hs, states = [leaves[0]], leaves
        for (n_leaves, *inner), place, of_leaves in zip(batch.counts, batch.places, new, strict=True):
            parts: list[State] = [of_leaves] if n_leaves else []
            if len(place):
                pairs = zip(*(of.index_select(0, place).split([2 * n for n in inner]) for of in states), strict=True)
                for name, n, pair in zip(self.composers, inner, pairs, strict=True):
                    if n:
                        parts.append(getattr(self, name)(*self.of_pairs(pair)))
                        hs.append(parts[-1][0])
            states = parts[0] if len(parts) == 1 else tuple(torch.cat(of) for of in zip(*parts, strict=True))
        return torch.cat(hs)


class PerNode(TreePeer):
    """The natural module: recursion over one tree after the other. Look-ups and classifier run once per tree."""

    def prepare(self, sample: Any) -> Any:
        """Words of leaves, and the labels."""
        words, children = sample.inputs
        leaves = np.array([word for word in words if word is not None])
        return words, children, self.kinds(words), leaves, np.array(sample.right)

    def batch(self, prepared: Sequence[Any]) -> list[Any]:
        """Words and labels go over at once; labels of all trees are last."""
        tensors = uploaded([array for one in prepared for array in one[3:]], self.device)
        trees = [(*one[:3], words) for one, words in zip(prepared, tensors[::2], strict=True)]
        return [trees, torch.cat(tensors[1::2])]

    def hidden(self, batch: list[Any]) -> Tensor:
        """Tree by tree."""
        return torch.cat([self.of_tree(*tree) for tree in batch[0]])

    def of_tree(self, words: Any, children: Any, kinds: Sequence[int], leaves: Tensor) -> Tensor:
        """Hidden states of all nodes of a tree."""
        xs = zip(*(looked_up.split(1) for looked_up in self.inputs(leaves)), strict=True)
        composers: list[Callable[..., State]] = [getattr(self, name) for name in self.composers]
        found = list[State]()
        for word, below, kind in zip(words, children, kinds, strict=True):  # post-order: recursion without its calls
            if word is not None:
                found.append(self.leaf(*next(xs)))
            else:
                found.append(composers[kind](*self.of_two(found[below[0]], found[below[1]])))
        return torch.cat([state[0] for state in found])


class TreeLSTM(TreePeer):
    """TreeLSTM; states are hidden and cell states [n, dim]."""

    def leaf(self, x: Tensor) -> State:
        """Of embeddings."""
        gates = F.linear(x, self.W, self.b_leaf)
        i, o = torch.sigmoid(gates[:, : 2 * self.dim]).chunk(2, 1)
        c = i * torch.tanh(gates[:, 2 * self.dim :])
        return o * torch.tanh(c), c

    def of_pairs(self, pairs: State) -> State:
        """Hidden states beside one another, and cell states."""
        h, c = pairs
        return h.view(len(h) // 2, -1), c[::2], c[1::2]

    def of_two(self, left: State, right: State) -> State:
        """The same of two nodes."""
        return torch.cat([left[0], right[0]], 1), left[1], right[1]

    def compose(self, h: Tensor, c1: Tensor, c2: Tensor) -> State:
        """Of the children's hidden states side by side [n, 2 dim], and their cell states."""
        return self.gated(F.linear(h, self.U, self.b), c1, c2)

    def gated(self, gates: Tensor, c1: Tensor, c2: Tensor) -> State:
        """What the gates [n, 5 dim] make of cell states."""
        i, o, f1, f2 = torch.sigmoid(gates[:, : 4 * self.dim]).chunk(4, 1)
        c = i * torch.tanh(gates[:, 4 * self.dim :]) + f1 * c1 + f2 * c2
        return o * torch.tanh(c), c


class TwoTypes(TreeLSTM):
    """TreeLSTM-2Type, the two types of a level one after the other."""

    composers = ("compose", "compose_second")

    def kinds(self, words: Sequence[int | None]) -> Sequence[int]:
        """As `edbatch.models.TreeLSTM2Type` draws them, by the seed that it has if none is given."""
        return node_types(words, seed=0)

    def compose_second(self, h: Tensor, c1: Tensor, c2: Tensor) -> State:
        """States of nodes of the second type."""
        return self.gated(F.linear(h, self.U_second, self.b_second), c1, c2)


class TreeGRU(TreePeer):
    """TreeGRU."""

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Without the prefix that the layer's parameters have."""
        return {name.removeprefix("tree."): value for name, value in values.items()}

    def leaf(self, x: Tensor) -> State:
        """States [n, dim]."""
        z, n = F.linear(x, self.W, self.b_leaf).chunk(2, 1)
        return (torch.sigmoid(z) * torch.tanh(n),)

    def compose(self, h: Tensor) -> State:
        """States [n, dim]; h [n, 2 dim] is the children's side by side."""
        d = self.dim
        gates = F.linear(h, self.U, self.b)
        new = torch.tanh(F.linear(torch.sigmoid(gates[:, : 2 * d]) * h, self.U_n, self.b_n))
        z1, z2, z3 = torch.softmax(gates[:, 2 * d :].unflatten(1, (3, d)), 1).unbind(1)
        return (z1 * h[:, :d] + z2 * h[:, d:] + z3 * new,)


class MVRNN(TreePeer):
    """Matrices are kept transposed: those of a node's children side by side are one operand of one product for all."""

    def arranged(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Words' matrices transposed, each a row."""
        return values | {"matrices": values["matrices"].transpose(1, 2).flatten(1)}

    def inputs(self, words: Tensor) -> State:
        """Vectors [n, dim] and matrices [n, dim, dim]."""
        rows = self.lookup(self.matrices, words)
        return self.lookup(self.vectors, words), rows.view(-1, self.dim, self.dim)

    def leaf(self, *inputs: Tensor) -> State:
        """They are the state."""
        return inputs

    def of_pairs(self, pairs: State) -> State:
        """Vectors and matrices of left and right children."""
        a, A = pairs
        return a[::2], a[1::2], A[::2], A[1::2]

    def of_two(self, left: State, right: State) -> State:
        """The same of two nodes, without a copy."""
        return left[0], right[0], left[1], right[1]

    def compose(self, a: Tensor, b: Tensor, A: Tensor, B: Tensor) -> State:
        """Vectors [n, dim] and matrices [n, dim, dim], transposed as they are given."""
        changed = torch.cat([torch.bmm(a.unsqueeze(1), B), torch.bmm(b.unsqueeze(1), A)], 2).squeeze(1)
        return torch.tanh(F.linear(changed, self.W)), F.linear(torch.cat([A, B], 2), self.W_M)


def both(kind: type[TreePeer]) -> dict[str, type[Peer]]:
    """A network per node, and by level."""
    return {"per sample": type(f"{kind.__name__}PerNode", (PerNode, kind), {}), "by hand": kind}


PEERS = {
    "tree-lstm": both(TreeLSTM),
    "tree-gru": both(TreeGRU),
    "mv-rnn": both(MVRNN),
    "tree-lstm-2type": both(TwoTypes),
}
