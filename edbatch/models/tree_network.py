"""What networks over binary trees with a softmax at every node have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import edbatch as eb
from edbatch.models.classifier import Classifier

State = tuple[eb.Expression, eb.Expression]


class TreeNetwork(Classifier):
    """A node's state are two expressions, of which the first is its hidden vector; a network defines `leaf` and
    `compose`. Arguments as of `Classifier`."""

    def leaf(self, word: int) -> State:
        """The state of a word."""
        raise NotImplementedError

    def compose(self, a1: eb.Expression, a2: eb.Expression, b1: eb.Expression, b2: eb.Expression) -> State:
        """The state of a node over those of its two children."""
        raise NotImplementedError

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Hidden vector of every node.

        Args:
            words: per node the word of a leaf, None inside the tree.
            children: per node the positions of its two children, which come before it; () for a leaf.

        No recursion: a tree may be as deep as memory allows.
        """
        nodes: list[State] = []
        leaf, compose = self.leaf, self.compose
        for word, below in zip(words, children, strict=True):
            if word is not None:
                nodes.append(leaf(word))
            else:
                left, right = below
                (a1, a2), (b1, b2) = nodes[left], nodes[right]  # in a call, they would be joined to a tuple first
                nodes.append(compose(a1, a2, b1, b2))
        return [vector for vector, _ in nodes]

    def loss(
        self, words: Sequence[int | None], children: Sequence[tuple[int, ...]], labels: Iterable[int]
    ) -> eb.Expression:
        """The sum of the cross-entropies of all nodes; arguments as of `hidden`, and per node its label."""
        return self.cross_entropies(self.hidden(words, children), labels)
