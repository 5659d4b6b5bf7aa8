"""Softmax layers over many classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.draws import generator
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.losses import pickneglogsoftmax, pickneglogsoftmax_batch
from edbatch.dynet.numeric import array_of
from edbatch.dynet.parameters import Parameters


class SoftmaxBuilder:
    """A distribution over classes, given a vector; the base of all."""

    part: str

    def __init__(self, model: ParameterCollection) -> None:
        self._model = model.add_subcollection(self.part)

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        raise NotImplementedError

    def neg_log_softmax_batch(self, x: Any, c: Sequence[int], update: bool = True) -> Any:
        """-log p(c | x) of each entry of a mini-batch."""
        raise NotImplementedError

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p of all classes."""
        raise NotImplementedError

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """Scores of all classes."""
        raise NotImplementedError

    def sample(self, x: Any) -> int:
        """A class that is drawn."""
        return drawn(self.full_log_distribution(x))


def drawn(log_probabilities: Any) -> int:
    """A number that is drawn with the probabilities whose logarithms these are."""
    array = array_of(log_probabilities).reshape(-1)
    return int(np.argmax(array + generator().gumbel(size=array.shape)))


class Layer:
    """W x + b, or W x."""

    def __init__(self, model: ParameterCollection, classes: int, rep_dim: int, bias: bool = True) -> None:
        self.W: Parameters = model.add_parameters((classes, rep_dim))
        self.b = model.add_parameters(classes, init=0.0) if bias else None

    def __call__(self, x: Any, update: bool) -> Any:
        """The scores; `update`: whether trainers change the parameters."""
        W = self.W.expr(update)
        return eb.matmul(W, x) if self.b is None else affine_transform([self.b.expr(update), W, x])


class StandardSoftmaxBuilder(SoftmaxBuilder):
    """softmax(W x + b)."""

    part = "standard-softmax-builder"

    def __init__(self, rep_dim: int, num_classes: int, pc: ParameterCollection, bias: bool = True) -> None:
        super().__init__(pc)
        self._layer = Layer(self._model, num_classes, rep_dim, bias)

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        return pickneglogsoftmax(self._layer(x, update), c)

    def neg_log_softmax_batch(self, x: Any, c: Sequence[int], update: bool = True) -> Any:
        """-log p(c | x) of each entry of a mini-batch."""
        return pickneglogsoftmax_batch(self._layer(x, update), c)

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p of all classes."""
        return eb.log_softmax(self._layer(x, update), 0)

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """W x + b."""
        return self._layer(x, update)


class ClassFactoredSoftmaxBuilder(SoftmaxBuilder):
    """p(word | x) = p(class | x) p(word | class, x).

    Args:
        rep_dim: size of x.
        cluster_file: lines of a class and a word.
        word_dict: the numbers of the words.
        pc: to which a part with the parameters is added.
        bias: whether layers have one.
    """

    part = "class-factored-softmax-builder"

    def __init__(
        self, rep_dim: int, cluster_file: str, word_dict: dict[str, int], pc: ParameterCollection, bias: bool = True
    ) -> None:
        super().__init__(pc)
        clusters: dict[str, list[int]] = {}
        with open(cluster_file, encoding="utf-8") as file:
            for line in file:
                cluster, word = line.split()[:2]
                clusters.setdefault(cluster, []).append(word_dict[word])
        self._words = list(clusters.values())
        self._place = {word: (c, at) for c, words in enumerate(self._words) for at, word in enumerate(words)}
        self._classes = Layer(self._model, len(self._words), rep_dim, bias)
        self._subclasses = [
            Layer(self._model, len(words), rep_dim, bias) if len(words) > 1 else None for words in self._words
        ]

    def class_logits(self, x: Any, update: bool = True) -> Any:
        """Scores of all classes."""
        return self._classes(x, update)

    def class_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p of all classes."""
        return eb.log_softmax(self._classes(x, update), 0)

    def subclass_logits(self, x: Any, classid: int, update: bool = True) -> Any:
        """Scores of the words of a class."""
        layer = self._subclasses[classid]
        return eb.zeros(1) if layer is None else layer(x, update)

    def subclass_log_distribution(self, x: Any, classid: int, update: bool = True) -> Any:
        """log p of the words of a class."""
        return eb.log_softmax(self.subclass_logits(x, classid, update), 0)

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        cluster, at = self._place[c]
        loss = pickneglogsoftmax(self._classes(x, update), cluster)
        layer = self._subclasses[cluster]
        return loss if layer is None else eb.add(loss, pickneglogsoftmax(layer(x, update), at))

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p of all words."""
        classes = self.class_log_distribution(x, update)
        words: list[Any] = [None] * len(self._place)
        for cluster in range(len(self._words)):
            inside = self.subclass_log_distribution(x, cluster, update)
            for at, word in enumerate(self._words[cluster]):
                words[word] = eb.add(eb.pick(classes, cluster), eb.pick(inside, at))
        return eb.stack(words)

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """log p of all words, which is a score."""
        return self.full_log_distribution(x, update)

    def sample(self, x: Any) -> int:
        """A word that is drawn."""
        cluster = drawn(self.class_log_distribution(x))
        return self._words[cluster][drawn(self.subclass_log_distribution(x, cluster))]
