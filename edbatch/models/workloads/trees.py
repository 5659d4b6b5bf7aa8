"""Workloads over trees: a label for every node from what is below it, and words from what is above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import Tree, stream_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.classifier import Classifier
from edbatch.models.mvrnn import MVRNN
from edbatch.models.tree_generator import TreeGenerator
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.tree_lstm_variants import TreeLSTM2Type
from edbatch.models.tree_rnn import RNTN, TreeRNN
from edbatch.models.trees import ChildSumTreeLSTM, TreeGRU
from edbatch.models.workloads.workload import Known, Numbered, Workload


class TreeGRUOverWords(Classifier):
    """`edbatch.models.TreeGRU` over trees whose leaves are words, with a softmax at every node.

    Arguments as of `edbatch.models.TreeLSTM`.
    """

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = TreeGRU(model, dim, dim)

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Vector of every node; arguments as of `TreeLSTM.hidden`."""
        nodes: list[eb.Expression] = []
        leaf, compose = self.layer.leaf, self.layer.compose
        for word, below in zip(words, children, strict=True):
            if word is not None:
                nodes.append(leaf(eb.lookup(self.embed, word)))
            else:
                left, right = below
                nodes.append(compose(nodes[left], nodes[right]))
        return nodes


class ChildSumOverWords(Classifier):
    """`edbatch.models.ChildSumTreeLSTM` over trees with any number of children whose leaves are words, with a softmax
    at every node. The input of a node without a word is zeros.

    Arguments as of `edbatch.models.TreeLSTM`.
    """

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.dim = dim
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = ChildSumTreeLSTM(model, dim, dim)

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Vector of every node; arguments as of `TreeLSTM.hidden`, children of any number."""
        nodes: list[tuple[eb.Expression, eb.Expression]] = []
        for word, below in zip(words, children, strict=True):
            x = eb.zeros(self.dim) if word is None else eb.lookup(self.embed, word)
            nodes.append(self.layer.node(x, [nodes[child] for child in below]))
        return [h for h, _ in nodes]


class TreeWriter(TreeGenerator):
    """`edbatch.models.TreeGenerator` that says trees which are given ("TD-TreeLSTM" of Jeong et al. 2018).

    What becomes of a node is decided by its probabilities, as when a tree grows, before anything is computed below it;
    the tree says which way it goes on.
    """

    async def answer(self, tree: Any, topic: int) -> list[eb.Expression]:
        """Probabilities of every word, and of two children, at every node; a program. Arguments as of `loss`."""
        return await self._answer(tree, self.root(topic))

    async def _answer(self, tree: Any, state: Any) -> list[eb.Expression]:
        shares = self.probabilities(state.output())
        await shares
        if not isinstance(tree, tuple):
            return [shares]
        sides = zip(tree, self.children(state), strict=True)
        left, right = await eb.all(*[self._answer(side, below) for side, below in sides])
        return [shares, *left, *right]

    async def guided(self, tree: Any, topic: int, right: Sequence[int]) -> list[eb.Expression]:
        """Scores of every word, and of two children, at every node of a tree; a program."""
        found, waiting = [], [(tree, self.root(topic))]
        while waiting:
            node, state = waiting.pop()
            found.append(self.scores(state.output()))
            if isinstance(node, tuple):
                waiting += reversed([*zip(node, self.children(state), strict=True)])
        return found


def _words_of(trees: Iterable[Tree]) -> list[str]:
    return [word for tree in trees for word in tree.words if word is not None]


def _know_trees(trees: list[Tree]) -> Known:
    words = list(dict.fromkeys(_words_of(trees)))
    return {"words": words, "labels": sorted({label for tree in trees for label in tree.labels})}


def _number_trees(trees: list[Tree], known: Known) -> Numbered:
    words, labels = Vocabulary(known["words"]), known["labels"]
    samples = [([None if word is None else words[word] for word in tree.words], tree.children) for tree in trees]
    return Numbered(samples, (len(words), len(labels)), labels)


def _know_nested(trees: list[Tree]) -> Known:
    return _know_trees(trees) | {"labels": sorted({tree.labels[-1] for tree in trees})}


def _number_nested(trees: list[Tree], known: Known) -> Numbered:
    """As pairs of pairs of words; the label of the root is what a tree is about."""
    words, topics = Vocabulary(known["words"]), known["labels"]
    samples = []
    for at, tree in enumerate(trees, start=1):
        if tree.labels[-1] not in topics:
            raise eb.EdBatchError(f"tree {at}: {tree.labels[-1]!r} is no label of the model")
        nodes: list[Any] = []
        for word, children in zip(tree.words, tree.children, strict=True):
            nodes.append(tuple(nodes[child] for child in children) if word is None else words[word])
        samples.append((nodes[-1], topics.index(tree.labels[-1])))
    return Numbered(samples, (len(words), len(topics)), ["<unk>", *known["words"], "()"])


def _from_the_root(tree: Tree) -> list[str]:
    """A word or "()" of every node, as `TreeWriter` says them: a node, what is below on the left, then the right."""
    found: list[str] = []
    waiting = [len(tree) - 1]
    while waiting:
        node = waiting.pop()
        word = tree.words[node]
        found.append("()" if word is None else word)
        waiting += reversed(tree.children[node])
    return found


_TREES = Workload(
    noun="tree",
    place="node",
    files=("trees",),
    folder=("sst/train.txt",),
    stream=partial(stream_trees, binary=True),
    generate=lambda n, seed: [tree.binarized() for tree in random_trees(n, seed)],
    know=_know_trees,
    numbered=_number_trees,
    network=TreeLSTM,
    root=True,
    right=lambda tree: tree.labels,
)

NINE = {
    "tree-lstm": _TREES,
    "tree-gru": replace(_TREES, network=TreeGRUOverWords),
    "mv-rnn": replace(_TREES, network=MVRNN),
    "tree-lstm-2type": replace(_TREES, network=TreeLSTM2Type),
}
OTHERS = {
    "child-sum": replace(_TREES, stream=stream_trees, generate=random_trees, network=ChildSumOverWords),
    "tree-rnn": replace(_TREES, network=TreeRNN),
    "rntn": replace(_TREES, network=RNTN, hidden=32),
    "td-tree-lstm": replace(
        _TREES,
        know=_know_nested,
        numbered=_number_nested,
        network=TreeWriter,
        root=False,
        program=True,
        right=_from_the_root,
    ),
}
