"""Top-down TreeLSTM: says a binary tree, whose shape follows from what it computes (Zhang et al. 2016, simplified)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier
from edbatch.models.generation import drawn
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import State

Tree: TypeAlias = "int | tuple[Tree, Tree]"  # a word's number, or two trees


class TreeGenerator(Classifier):
    """At every node either a word or two children, from the state that its parent has given it.

    A child's state is a step of the LSTM for its side from its parent's state; a right child also reads the output of
    the root of the left one, so that it knows what is said beside it.

    `topics` are kinds of trees; the root's state begins with that of its kind.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TreeGenerator
        >>> network = TreeGenerator(eb.ParameterCollection(seed=0), words=10, topics=2, dim=4)
        >>> with eb.Graph():
        ...     loss = network.loss(((3, 4), 5), topic=1)
        ...     trees = eb.run([network.grow(topic, deepest=3) for topic in (0, 1)])
        >>> loss.shape, len(trees)
        ((), 2)
    """

    @checked
    def __init__(self, model: eb.ParameterCollection, words: int, topics: int, dim: int) -> None:
        self.words = words  # the label of a node with children, which follows those of words
        self.embed_topic = model.add_lookup_parameters((topics, dim), name="embed_topic")
        self.left = LSTM(model, dim, dim, name="left")
        self.right = LSTM(model, dim, dim, name="right")
        super().__init__(model, dim, words + 1)

    def root(self, topic: int) -> State:
        """The state of the root."""
        return self.left.initial_state().add_input(eb.lookup(self.embed_topic, topic))

    def children(self, state: State) -> tuple[State, State]:
        """The states of a node's children."""
        before = state.output()
        left = State(self.left, state.vectors).add_input(before)
        return left, State(self.right, state.vectors).add_input(left.output())

    def loss(self, tree: Tree, topic: int) -> eb.Expression:
        """The sum of the cross-entropies of all nodes of a tree; its leaves are words, its nodes pairs."""
        return eb.sum([self.cross_entropy(state.output(), label) for label, state in self._nodes(tree, topic)])

    async def guided(self, tree: Tree, topic: int, right: object = None) -> list[eb.Expression]:
        """Scores of every word, and of two children, at every node: itself, its left side, its right; a program."""
        return [self.scores(state.output()) for _, state in self._nodes(tree, topic)]

    async def answer(self, tree: Tree, topic: int) -> list[eb.Expression]:
        """The probabilities; a program that waits for those of a node before anything is computed below it, as when a
        tree grows ("TD-TreeLSTM" of Jeong et al. 2018)."""
        return await self._answered(tree, self.root(topic))

    async def grow(self, topic: int, deepest: int, random: np.random.Generator | None = None) -> Tree:
        """A tree; a program for `edbatch.run`, in which the two sides of a tree grow at once.

        Args:
            topic: of what kind.
            deepest: nodes this deep are words.
            random: draws what a node becomes; None: the most probable.
        """
        return await self._grown(self.root(topic), deepest, random)

    def _nodes(self, tree: Tree, topic: int) -> Iterator[tuple[int, State]]:
        """The label and the state of every node."""
        waiting = [(tree, self.root(topic))]
        while waiting:
            node, state = waiting.pop()
            if isinstance(node, tuple):
                yield self.words, state
                waiting += reversed([*zip(node, self.children(state), strict=True)])
            else:
                yield node, state

    async def _answered(self, tree: Tree, state: State) -> list[eb.Expression]:
        shares = self.probabilities(state.output())
        await shares
        if not isinstance(tree, tuple):
            return [shares]
        sides = zip(tree, self.children(state), strict=True)
        left, right = await eb.all(*[self._answered(side, below) for side, below in sides])
        return [shares, *left, *right]

    async def _grown(self, state: State, deepest: int, random: np.random.Generator | None) -> Any:
        shares = await eb.softmax(self.scores(state.output()))
        if not deepest:
            shares = shares[:-1]
        label = int(shares.argmax()) if random is None else drawn(shares, random.random())
        if label < self.words:
            return label
        # What is drawn follows from the place in the tree, not from which side grows first.
        sides = [None, None] if random is None else random.spawn(2)
        left, right = self.children(state)
        return tuple(await eb.all(self._grown(left, deepest - 1, sides[0]), self._grown(right, deepest - 1, sides[1])))
