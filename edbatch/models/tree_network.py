"""Networks over binary trees with a softmax at every node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import edbatch as eb
from edbatch.models.classifier import Classifier


class TreeNetwork(Classifier):
    """A softmax over the hidden vector of every node; a network defines `leaf` and `compose`.

    Arguments as of `Classifier`.

    Attributes:
        states: expressions that a node's state consists of, 1 or 2; the first is its hidden vector.
    """

    states = 2
    leaf: Any  # from the number of a word to its state
    compose: Any  # from the states of two children, (h1, h2) or (h1, c1, h2, c2), to that of their node

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Hidden vector of every node.

        Args:
            words: per node the word of a leaf, None inside the tree.
            children: per node the positions of its two children, which come before it; () for a leaf.

        No recursion: a tree may be as deep as memory allows.
        """
        nodes: list[Any] = []
        leaf, compose, single = self.leaf, self.compose, self.states == 1
        for word, below in zip(words, children, strict=True):
            if word is not None:
                nodes.append(leaf(word))
                continue
            left, right = below
            if single:
                nodes.append(compose(nodes[left], nodes[right]))
            else:
                (a1, a2), (b1, b2) = nodes[left], nodes[right]  # in a call, they would be joined to a tuple first
                nodes.append(compose(a1, a2, b1, b2))
        return nodes if single else [h for h, _ in nodes]

    def loss(
        self, words: Sequence[int | None], children: Sequence[tuple[int, ...]], labels: Iterable[int]
    ) -> eb.Expression:
        """The sum of the cross-entropies of all nodes; arguments as of `hidden`, and per node its label."""
        return self.cross_entropies(self.hidden(words, children), labels)
