"""Losses, probabilities and norms, and softmax layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import multiply, with_axes
from edbatch.dynet.checked import integer, integers, named
from edbatch.dynet.collection import Builder, ParameterCollection
from edbatch.dynet.expression import node, one_or_batch, plain
from edbatch.dynet.linear import affine_transform
from edbatch.dynet.reduce import sum_elems
from edbatch.graph.expression_array import ExpressionArray


def log_softmax(x: Any, restrict: Sequence[int] | None = None) -> Any:
    """x - log Σ eˣ down the columns; `restrict`: over these entries alone, others are -inf."""
    if restrict is None:
        return eb.log_softmax(x, 0)
    numbers = integers("log_softmax: restrict", restrict)
    kept = np.full(x.spec.shape, -np.inf)
    kept[numbers] = 0.0
    chosen = eb.stack([eb.pick(x, one) for one in numbers])
    return eb.add(eb.subtract(x, eb.logsumexp(chosen, 0)), kept)


def _vector(x: Any) -> Any:
    """A column as a vector."""
    return eb.reshape(x, x.spec.shape[:1]) if x.spec.shape[1:] == (1,) else x


def pickneglogsoftmax(x: Any, v: int) -> Any:
    """-log softmax(x)[v]."""
    return eb.cross_entropy(_vector(x), integer("pickneglogsoftmax: v", v))


def pickneglogsoftmax_batch(x: Any, vs: Sequence[int]) -> Any:
    """-log softmax(x)[v] of each entry of a mini-batch."""
    labels = integers("pickneglogsoftmax_batch: vs", vs)
    if not isinstance(x, ExpressionArray):
        (label,) = labels
        return pickneglogsoftmax(x, label)
    return eb.cross_entropy(_vector(x), np.array(labels))


def hinge(x: Any, v: int, m: float = 1.0) -> Any:
    """Σ over others of max(0, m + x - x[v])."""
    return eb.hinge(_vector(x), integer("hinge: v", v), m)


def hinge_batch(x: Any, vs: Sequence[int], m: float = 1.0) -> Any:
    """`hinge` of each entry of a mini-batch."""
    labels = integers("hinge_batch: vs", vs)
    entries = list(plain(x)) if isinstance(x, ExpressionArray) else [x]
    return one_or_batch(eb.array([hinge(one, v, m) for one, v in zip(entries, labels, strict=True)]))


def hinge_dim(x: Any, v: Sequence[int], d: int = 0, m: float = 1.0) -> Any:
    """`hinge` of each column (`d` 0) or row (`d` 1) of a matrix."""
    lines = node(x if d else eb.transpose(x))
    return eb.stack([hinge(line, label, m) for line, label in zip(lines, v, strict=True)])


def _poisson(log_mean: Any, x: int) -> Any:
    x = integer("poisson_loss: x", x)
    return eb.add(eb.subtract(eb.exp(log_mean), eb.multiply(log_mean, float(x))), math.lgamma(x + 1))


def _sparsemax(x: Any) -> Any:
    x = node(x)
    n = x.spec.size
    largest, _ = eb.top_k(x, n, 0)
    means = eb.multiply(eb.subtract(eb.cumsum(largest, 0), 1.0), 1 / np.arange(1, n + 1))  # of k entries, less 1 / k
    return eb.relu(eb.subtract(x, eb.max(means, 0)))


def _constrained_softmax(x: Any, y: Any) -> Any:
    """eˣ times a factor, or y where that is less.

    Entries that are y are those with the smallest y / eˣ: of the factors that follow from each number of them, the
    largest is right.
    """
    x, y = node(x), node(y)
    powers = eb.exp(eb.subtract(x, eb.stop_gradient(eb.max(x, 0))))
    _, order = eb.top_k(eb.neg(eb.divide(y, powers)), x.spec.size, 0)
    limits, left = eb.gather(y, order, 0), eb.gather(powers, order, 0)
    held = eb.subtract(eb.cumsum(limits, 0), limits)  # of all before each
    rest = eb.flip(eb.cumsum(eb.flip(left, 0), 0), 0)
    return eb.minimum(y, eb.multiply(powers, eb.max(eb.divide(eb.subtract(1.0, held), rest), 0)))


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    """(x - mean) / standard deviation, times g, plus b."""
    moved = eb.subtract(x, eb.mean(x, 0))
    scale = eb.sqrt(eb.mean(eb.square(moved), 0))
    return eb.add(eb.multiply(eb.divide(moved, scale), g), b)


#: By DyNet's name.
TABLE = named(
    log_softmax, pickneglogsoftmax, pickneglogsoftmax_batch, hinge, hinge_batch, hinge_dim, layer_norm,
    softmax=(lambda x, d=0: eb.softmax(with_axes(x, 1), int(d)), "eˣ / Σ eˣ along an axis."),
    weight_norm=(lambda w, g: multiply(eb.divide(w, eb.sqrt(sum_elems(eb.square(w)))), g), "w times g over its norm."),
    binary_log_loss=(lambda x, y: eb.binary_cross_entropy(x, y), "-Σ y log x + (1 - y) log(1 - x)."),
    squared_distance=(lambda x, y: eb.squared_distance(x, y), "Σ (x - y)²."),
    l1_distance=(lambda x, y: eb.l1_distance(x, y), "Σ |x - y|."),
    huber_distance=(lambda x, y, c=1.345: eb.huber(x, y, float(c)), "Σ of ½d² below |d| = c, of c (|d| - ½c) beyond."),
    pairwise_rank_loss=(lambda x, y, m=1.0: eb.relu(eb.add(eb.subtract(y, x), float(m))), "max(0, m - x + y)."),
    poisson_loss=(_poisson, "-log of Poisson's probability of x, given the logarithm of its mean."),
    sparsemax=(_sparsemax, "The nearest probabilities (Martins and Astudillo 2016)."),
    constrained_softmax=(_constrained_softmax, "The nearest probabilities, by divergence, nowhere above y."),
)  # fmt: skip


class _Layer:
    """W x + b, or W x."""

    def __init__(self, model: ParameterCollection, classes: int, rep_dim: int, bias: bool) -> None:
        self._W = model.add_parameters((classes, rep_dim))
        self._b = model.add_parameters(classes, init=0.0) if bias else None

    def __call__(self, x: Any, update: bool) -> Any:
        """The scores; `update`: whether trainers change the parameters."""
        W = self._W.expr(update)
        return eb.matmul(W, x) if self._b is None else affine_transform([self._b.expr(update), W, x])


class StandardSoftmaxBuilder(Builder):
    """softmax(W x + b)."""

    part = "standard-softmax-builder"

    def __init__(self, rep_dim: int, num_classes: int, pc: ParameterCollection, bias: bool = True) -> None:
        super().__init__(pc)
        self._layer = _Layer(self._model, num_classes, rep_dim, bias)

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        return pickneglogsoftmax(self._layer(x, update), c)


class ClassFactoredSoftmaxBuilder(Builder):
    """p(word | x) = p(class | x) p(word | class, x); `cluster_file` has lines of a class and a word."""

    part = "class-factored-softmax-builder"

    def __init__(
        self, rep_dim: int, cluster_file: str, word_dict: dict[str, int], pc: ParameterCollection, bias: bool = True
    ) -> None:
        super().__init__(pc)
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

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x)."""
        cluster, at = self._places[c]
        loss, inside = pickneglogsoftmax(self._classes(x, update), cluster), self._words[cluster]
        return loss if inside is None else eb.add(loss, pickneglogsoftmax(inside(x, update), at))
