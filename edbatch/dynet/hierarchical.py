"""A softmax over words that are the leaves of a tree."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.implicit import DynetError
from edbatch.dynet.losses import pickneglogsoftmax
from edbatch.dynet.softmax_builders import Layer, SoftmaxBuilder, drawn


class _Cluster:
    """A node of the tree: its children are clusters, or words by their numbers."""

    def __init__(self) -> None:
        self.children: list[Any] = []
        self.places: dict[str, int] = {}
        self.layer: Layer | None = None

    def child(self, symbol: str) -> _Cluster:
        """The cluster with a symbol, which is made if it is not there."""
        if symbol not in self.places:
            self.places[symbol] = len(self.children)
            self.children.append(_Cluster())
        found: _Cluster = self.children[self.places[symbol]]
        return found

    def initialize(self, model: ParameterCollection, rep_dim: int) -> None:
        """Add the parameters of the cluster and of those below: a score for each child, one for two, none for one."""
        count = len(self.children)
        self.layer = None if count == 1 else Layer(model, 1 if count == 2 else count, rep_dim)
        for child in self.children:
            if isinstance(child, _Cluster):
                child.initialize(model, rep_dim)

    def loss(self, x: Any, place: int, update: bool) -> Any:
        """-log p of a child; None if there is no other."""
        if self.layer is None:
            return None
        score = self.layer(x, update)
        if len(self.children) > 2:
            return pickneglogsoftmax(score, place)
        return eb.neg(eb.log_sigmoid(eb.reshape(eb.neg(score) if place else score, ())))

    def log_distribution(self, x: Any, update: bool) -> Any:
        """log p of all children, a vector."""
        if self.layer is None:
            return eb.zeros(1)
        score = self.layer(x, update)
        if len(self.children) > 2:
            return eb.log_softmax(score, 0)
        return eb.log_sigmoid(eb.concatenate([score, eb.neg(score)]))


class HierarchicalSoftmaxBuilder(SoftmaxBuilder):
    """p(word | x) is the product of the probabilities of all branches on the way to the word.

    DyNet's Python has no name for it, its C++ library has.

    Args:
        rep_dim: size of x.
        cluster_file: lines of a path, whose symbols are divided by single spaces, a tab, and a word.
        word_dict: the numbers of the words.
        pc: to which a part with the parameters is added.
    """

    part = "hsm-builder"

    def __init__(self, rep_dim: int, cluster_file: str, word_dict: dict[str, int], pc: ParameterCollection) -> None:
        super().__init__(pc)
        self._root = _Cluster()
        self._ways: dict[int, list[tuple[_Cluster, int]]] = {}  # by word the clusters on its way, and the child of each
        with open(cluster_file, encoding="utf-8") as file:
            for line in file:
                path, _, rest = line.rstrip("\n").partition("\t")
                self._add(path.split(), rest.split()[:1], word_dict)
        self._root.initialize(self._model, rep_dim)

    def _add(self, path: list[str], word: list[str], word_dict: dict[str, int]) -> None:
        if not path or not word:
            raise DynetError(f"File formatting error in HierarchicalSoftmaxBuilder: {path} {word}")
        cluster, way = self._root, []
        for symbol in path:
            below = cluster.child(symbol)
            way.append((cluster, cluster.places[symbol]))
            cluster = below
        number = word_dict[word[0]]
        self._ways[number] = [*way, (cluster, len(cluster.children))]
        cluster.children.append(number)

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        losses = [cluster.loss(x, place, update) for cluster, place in self._ways[int(c)]]
        found = [loss for loss in losses if loss is not None]
        return eb.sum(found) if found else eb.zeros(())

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p of all words, by their numbers; DyNet has none."""
        logs: dict[_Cluster, Any] = {}
        words = []
        for word in range(len(self._ways)):
            parts = []
            for cluster, place in self._ways[word]:
                if cluster not in logs:
                    logs[cluster] = cluster.log_distribution(x, update)
                parts.append(eb.pick(logs[cluster], place))
            words.append(eb.sum(parts))
        return eb.stack(words)

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """log p of all words, which is a score."""
        return self.full_log_distribution(x, update)

    def sample(self, x: Any) -> int:
        """A word that is drawn."""
        found: Any = self._root
        while isinstance(found, _Cluster):
            found = found.children[drawn(found.log_distribution(x, True))]
        return int(found)
