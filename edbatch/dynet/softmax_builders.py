"""Softmax layers over many classes."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.dynet.collection import ParameterCollection
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.losses import pickneglogsoftmax


class _Layer:
    """W x + b, or W x."""

    def __init__(self, model: ParameterCollection, classes: int, rep_dim: int, bias: bool) -> None:
        self._W = model.add_parameters((classes, rep_dim))
        self._b = model.add_parameters(classes, init=0.0) if bias else None

    def __call__(self, x: Any, update: bool) -> Any:
        """The scores; `update`: whether trainers change the parameters."""
        W = self._W.expr(update)
        return eb.matmul(W, x) if self._b is None else affine_transform([self._b.expr(update), W, x])


class StandardSoftmaxBuilder:
    """softmax(W x + b).

    Args:
        rep_dim: size of x.
        num_classes: how many classes there are.
        pc: to which a part with the parameters is added.
        bias: whether there is a b.
    """

    def __init__(self, rep_dim: int, num_classes: int, pc: ParameterCollection, bias: bool = True) -> None:
        self._model = pc.add_subcollection("standard-softmax-builder")
        self._layer = _Layer(self._model, num_classes, rep_dim, bias)

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        return pickneglogsoftmax(self._layer(x, update), c)


class ClassFactoredSoftmaxBuilder:
    """p(word | x) = p(class | x) p(word | class, x).

    Args:
        rep_dim: size of x.
        cluster_file: lines of a class and a word.
        word_dict: the numbers of the words.
        pc: to which a part with the parameters is added.
        bias: whether layers have one.
    """

    def __init__(
        self, rep_dim: int, cluster_file: str, word_dict: dict[str, int], pc: ParameterCollection, bias: bool = True
    ) -> None:
        self._model = pc.add_subcollection("class-factored-softmax-builder")
        words: dict[str, list[int]] = {}
        with open(cluster_file, encoding="utf-8") as file:
            for line in file:
                cluster, word = line.split()[:2]
                words.setdefault(cluster, []).append(word_dict[word])
        self._places = {word: (c, at) for c, listed in enumerate(words.values()) for at, word in enumerate(listed)}
        self._classes = _Layer(self._model, len(words), rep_dim, bias)
        self._words = [
            _Layer(self._model, len(listed), rep_dim, bias) if len(listed) > 1 else None for listed in words.values()
        ]

    def param_collection(self) -> ParameterCollection:
        """Its parameters."""
        return self._model

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        cluster, at = self._places[c]
        loss, inside = pickneglogsoftmax(self._classes(x, update), cluster), self._words[cluster]
        return loss if inside is None else eb.add(loss, pickneglogsoftmax(inside(x, update), at))
