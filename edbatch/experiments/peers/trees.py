"""The networks over binary trees in PyTorch: what is per sample, and what is batched by hand, level by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from edbatch.experiments.peers.peer import Peer, PerSample, uploaded
from edbatch.experiments.peers.samples import TreeSample

State = tuple[Tensor, ...]  # of nodes, the first is their hidden vectors


class TreePeer(Peer):
    """What the equations of a network over trees are asked for."""

    def inputs(self, words: Tensor) -> State:
        """What is looked up of words."""
        raise NotImplementedError

    def leaf(self, *inputs: Tensor) -> State:
        """The state of leaves."""
        raise NotImplementedError

    @staticmethod
    def of_two(left: State, right: State) -> State:
        """What `compose` takes, from the states of one left child and of one right child."""
        raise NotImplementedError

    @staticmethod
    def of_pairs(pairs: State) -> State:
        """The same from states [2 n, ...] in which the two children of a node follow one another."""
        raise NotImplementedError

    def compose(self, *operands: Tensor) -> State:
        """The state of nodes over those of their children."""
        raise NotImplementedError

    def composers(self) -> tuple[Callable[..., State], ...]:
        """`compose` of every kind of node."""
        return (self.compose,)

    def kinds(self, sample: TreeSample) -> Sequence[int] | None:
        """Per node its kind; that of a leaf means nothing. None: there is but one."""
        return None


class TreePerSample(PerSample, TreePeer):
    """The natural module: recursion over one tree. Its look-ups and its classifier run once per tree."""

    def prepare(self, sample: TreeSample) -> Any:
        """Words of leaves, and the labels."""
        words = np.array([word for word in sample.words if word is not None])
        kinds = self.kinds(sample) or [0] * len(sample.words)
        return sample.words, sample.children, kinds, words, np.array(sample.labels)

    def batch(self, prepared: Sequence[Any]) -> list[Any]:
        """Words and labels go over at once."""
        tensors = iter(uploaded([array for one in prepared for array in one[3:]], self.device))
        return [(*one[:3], next(tensors), next(tensors)) for one in prepared]

    def of_sample(self, one: Any) -> Tensor:
        """Hidden states of all nodes of a tree."""
        words, children, kinds, leaves, _ = one
        xs = zip(*(looked_up.split(1) for looked_up in self.inputs(leaves)), strict=True)
        composers, found = self.composers(), list[State]()
        for word, below, kind in zip(words, children, kinds, strict=True):  # post-order: recursion without its calls
            if word is not None:
                found.append(self.leaf(*next(xs)))
            else:
                found.append(composers[kind](*self.of_two(found[below[0]], found[below[1]])))
        return torch.cat([state[0] for state in found])


class _Prepared(NamedTuple):
    """Of one tree, per node: depth, word (-1 inside the tree), label, the order in which its parent takes it, kind."""

    depth: np.ndarray
    word: np.ndarray
    label: np.ndarray
    order: np.ndarray
    kind: np.ndarray | None


class TreeLevels(NamedTuple):
    """Indices of one mini-batch.

    Attributes:
        leaves: how many there are per depth, the deepest first.
        inner: how many inner nodes of each kind there are per depth.
        places: per depth where the next batch finds its operands in (inner nodes, leaves).
        words: of all leaves by depth.
        labels: of (leaves, inner nodes) in this order.
    """

    leaves: list[int]
    inner: list[list[int]]
    places: Sequence[Tensor]
    words: Tensor
    labels: Tensor


class TreeByLevel(TreePeer):
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
        kinds = self.kinds(sample)
        return _Prepared(depth, word, np.array(sample.labels), order, None if kinds is None else np.array(kinds))

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
        by_kind, n_of_kinds = self._by_kind(prepared, order[~is_leaf], depth[~is_leaf], inner)
        if by_kind is not None:
            rank_inner[np.flatnonzero(~is_leaf)[by_kind]] = np.arange(len(by_kind))
        first_inner = np.repeat(np.cumsum(inner) - inner, inner + leaves)
        first_leaf = np.repeat(np.cumsum(leaves) - leaves, inner + leaves)
        at = np.where(is_leaf, rank_leaf - first_leaf + np.repeat(inner, inner + leaves), rank_inner - first_inner)
        inner_labels = label[~is_leaf]
        if by_kind is not None:  # the pairs of children are in the order of their parents, the roots are last
            roots = len(prepared)
            at[: len(at) - roots] = at[: len(at) - roots].reshape(-1, 2)[by_kind].reshape(-1)
            inner_labels = inner_labels[by_kind]
        labels = np.concatenate([label[is_leaf], inner_labels])
        places, words, labels = uploaded([at, word[order][is_leaf], labels], self.device)
        return TreeLevels(leaves.tolist(), n_of_kinds, places.split((inner + leaves).tolist()), words, labels)

    def _by_kind(
        self, prepared: Sequence[_Prepared], nodes: np.ndarray, depth: np.ndarray, inner: np.ndarray
    ) -> tuple[np.ndarray | None, list[list[int]]]:
        """The order of inner nodes that puts those of one depth and kind beside one another, and how many there are."""
        if prepared[0].kind is None:
            return None, inner[:, None].tolist()
        kind = np.concatenate([one.kind for one in prepared if one.kind is not None])[nodes]
        kinds, levels = len(self.composers()), len(inner)
        group = (levels - 1 - depth) * kinds + kind
        return np.argsort(group, kind="stable"), np.bincount(group, minlength=levels * kinds).reshape(
            -1, kinds
        ).tolist()

    def hidden(self, batch: TreeLevels) -> Tensor:
        """Leaves, then inner nodes."""
        composers = self.composers()
        leaves = self.leaf(*self.inputs(batch.words))
        hs, states = [leaves[0]], tuple(of[:0] for of in leaves)
        above = [*batch.inner[1:], [0]]
        for n, counts, place, *new in zip(
            batch.inner, above, batch.places, *(of.split(batch.leaves) for of in leaves), strict=True
        ):
            if sum(n) and len(new[0]):
                states = tuple(torch.cat(two) for two in zip(states, new, strict=True))
            elif len(new[0]):
                states = tuple(new)
            if sum(counts):
                states = self._composed(composers, counts, states, place)
                hs.append(states[0])
        return torch.cat(hs)

    def _composed(
        self, composers: Sequence[Callable[..., State]], counts: list[int], states: State, place: Tensor
    ) -> State:
        """The states of one depth."""
        pairs = tuple(of.index_select(0, place) for of in states)
        if counts[0] == sum(counts):
            return composers[0](*self.of_pairs(pairs))
        twice = [2 * count for count in counts]
        parts = zip(composers, zip(*(of.split(twice) for of in pairs), strict=True), strict=True)
        found = [compose(*self.of_pairs(part)) for compose, part in parts if len(part[0])]
        return found[0] if len(found) == 1 else tuple(torch.cat(of) for of in zip(*found, strict=True))
