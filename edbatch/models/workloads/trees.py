"""Workloads over trees: a label for every node from what is below it, and words from what is above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import Tree, stream_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.classifier import Classifier
from edbatch.models.tree_generator import TreeGenerator
from edbatch.models.tree_lstm import TreeLSTM, TreeState
from edbatch.models.tree_lstm_variants import ChildSumTreeLSTM, TreeLSTM2Type
from edbatch.models.tree_network import TreeNetwork
from edbatch.models.tree_rnn import MVRNN, RNTN, TreeRNN
from edbatch.models.trees import TreeGRU
from edbatch.models.workloads.workload import Known, Numbered, Workload, distinct


class TreeGRUOverWords(TreeNetwork):
    """`TreeGRU` over trees whose leaves are words, with a softmax at every node; arguments as of `TreeLSTM`."""

    states = 1

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        Classifier.__init__(self, model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = TreeGRU(model, dim, dim)
        self.compose = self.layer.compose

    def leaf(self, word: int) -> eb.Expression:
        """State [dim] of a word."""
        return self.layer.leaf(eb.lookup(self.embed, word))


class ChildSumOverWords(Classifier):
    """`ChildSumTreeLSTM` over trees with any number of children whose leaves are words, with a softmax at every node.

    The input of a node without a word is zeros. Arguments as of `TreeLSTM`.
    """

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = ChildSumTreeLSTM(model, dim, dim)

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Vector of every node; arguments as of `TreeLSTM.hidden`, children of any number."""
        nodes: list[TreeState] = []
        for word, below in zip(words, children, strict=True):
            x = eb.zeros(self.layer.dim) if word is None else eb.lookup(self.embed, word)
            nodes.append(self.layer.node(x, [nodes[child] for child in below]))
        return [h for h, _ in nodes]


def _know_trees(trees: list[Tree]) -> Known:
    words = distinct((word for word in tree.words if word is not None) for tree in trees)
    return {"words": words, "labels": sorted(distinct(tree.labels for tree in trees))}


def _number_trees(trees: list[Tree], known: Known) -> Numbered:
    words, labels = Vocabulary(known["words"]), known["labels"]
    samples = [([None if word is None else words[word] for word in tree.words], tree.children) for tree in trees]
    return Numbered(samples, (len(words), len(labels)), labels)


def _know_nested(trees: list[Tree]) -> Known:
    return _know_trees(trees) | {"labels": sorted({tree.labels[-1] for tree in trees})}


def _number_nested(trees: list[Tree], known: Known) -> Numbered:
    """As pairs of pairs of words; the label of the root is the topic of a tree."""
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
    """A word or "()" of every node, as `TreeGenerator` says them: a node, what is below on the left, then the right."""
    found: list[str] = []
    waiting = [len(tree) - 1]
    while waiting:
        node = waiting.pop()
        found.append(tree.words[node] or "()")
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
_NESTED = replace(_TREES, know=_know_nested, numbered=_number_nested, root=False, program=True, right=_from_the_root)

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
    "td-tree-lstm": replace(_NESTED, network=TreeGenerator),
}
