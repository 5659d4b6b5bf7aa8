"""Networks over binary trees with a softmax at every node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier


class TreeNetwork(Classifier):
    """A softmax over the hidden vector of every node; a network defines `leaf`, `compose` and its parameters.

    Attributes:
        states: expressions that a node's state consists of, 1 or 2; the first is its hidden vector.
    """

    states = 2
    leaf: Any  # from the number of a word to its state
    compose: Any  # from the states of two children, (h1, h2) or (h1, c1, h2, c2), to that of their node

    @checked
    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        self.dim = dim
        self._add_parameters(model, words)
        super().__init__(model, self.dim, labels)

    def _add_parameters(self, model: eb.ParameterCollection, words: int) -> None:
        raise NotImplementedError

    def _composers(self, words: Sequence[int | None]) -> list[Any]:
        """What composes each node."""
        return [self.compose] * len(words)

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Hidden vector of every node.

        Args:
            words: per node the word of a leaf, None inside the tree.
            children: per node the positions of its two children, which come before it; () for a leaf.

        No recursion: a tree may be as deep as memory allows.
        """
        nodes: list[Any] = []
        leaf, single = self.leaf, self.states == 1
        for word, below, compose in zip(words, children, self._composers(words), strict=True):
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
