"""Layers with an embedding of words and a softmax, as `edbatch run` runs them; arguments as of all models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.programs import ATTRIBUTES
from edbatch.models.classifier import Classifier
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.module_network import ModuleNetwork
from edbatch.models.tree_lstm import TreeState
from edbatch.models.tree_lstm_variants import ChildSumTreeLSTM
from edbatch.models.tree_network import TreeNetwork
from edbatch.models.trees import TreeFC, TreeGRU

FEATURES, SIDE = 8, 8  # channels of a picture's features, and its height and width
ANSWERS = ["yes", "no", *map(str, range(11)), *(value for values in ATTRIBUTES.values() for value in values)]
EXPERTS = 16


class OverWords(Classifier):
    """A layer of a kind over the embeddings of words, and a softmax."""

    kind: Any

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        Classifier.__init__(self, model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = self.kind(model, dim, dim)


class TreeGRUOverWords(OverWords, TreeNetwork):
    """`TreeGRU` over trees whose leaves are words, with a softmax at every node."""

    kind = TreeGRU
    states = 1

    def leaf(self, word: int) -> eb.Expression:
        """State [dim] of a word."""
        return self.layer.leaf(eb.lookup(self.embed, word))

    @property
    def compose(self) -> Any:
        """State [dim] of a node over its children's."""
        return self.layer.compose


class ChildSumOverWords(OverWords):
    """`ChildSumTreeLSTM` over trees with any number of children whose leaves are words, with a softmax at every node;
    the input of a node without a word is zeros."""

    kind = ChildSumTreeLSTM

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Vector of every node; arguments as of `TreeLSTM.hidden`, children of any number."""
        nodes: list[TreeState] = []
        for word, below in zip(words, children, strict=True):
            x = eb.zeros(self.layer.dim) if word is None else eb.lookup(self.embed, word)
            nodes.append(self.layer.node(x, [nodes[child] for child in below]))
        return [h for h, _ in nodes]


class TreeFCOverWords(OverWords):
    """`TreeFC` over the complete binary tree whose leaves are words, with a softmax at its root."""

    kind = TreeFC

    def hidden(self, words: Sequence[int]) -> list[eb.Expression]:
        """Vector [dim] of the root, over 1, 2, 4, 8, ... words."""
        return [self.layer.root([eb.lookup(self.embed, word) for word in words])]


class PictureQuestions(ModuleNetwork):
    """`ModuleNetwork` over pictures that are given as arrays; `dim` channels between modules."""

    def __init__(self, model: eb.ParameterCollection, modules: dict[str, int], dim: int) -> None:
        super().__init__(model, modules, FEATURES, dim, SIDE, len(ANSWERS))

    def hidden(self, steps: Sequence[Any], picture: np.ndarray) -> list[eb.Expression]:  # type: ignore[override]
        """The result of the program."""
        return [super().hidden(steps, eb.input(picture))]


class ExpertClassifier(Classifier):
    """A layer of `MixtureOfExperts`, of which the best is asked, and a softmax over its answer."""

    def __init__(self, model: eb.ParameterCollection, inputs: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.layer = MixtureOfExperts(model, EXPERTS, inputs, dim)

    async def answer(self, x: Sequence[float]) -> list[eb.Expression]:
        """Probabilities of the classes; a program."""
        return [eb.softmax(scores) for scores in await self.guided(x)]

    async def guided(self, x: Sequence[float], right: object = None) -> list[eb.Expression]:
        """Scores of the classes, whatever is right; a program."""
        return [self.scores(await self.layer.mix(eb.input(x)))]
