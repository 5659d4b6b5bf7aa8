"""Losses, probabilities, dropout and normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import multiply
from edbatch.dynet.checked import integer, integers, number, positive, probability
from edbatch.dynet.draws import generator
from edbatch.dynet.expression import one_or_batch
from edbatch.dynet.implicit import DynetIndexError
from edbatch.dynet.numeric import constant, node
from edbatch.dynet.reduce import sum_elems
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray


def softmax(x: Any, d: int = 0) -> Any:
    """eˣ / Σ eˣ along an axis."""
    if len(x.spec.shape) > 2:
        raise EdBatchError(f"Bad input dimensions in Softmax, must be 2 or fewer: {x.spec.shape}")
    return eb.softmax(x if x.spec.shape else eb.reshape(x, (1,)), int(d))


def log_softmax(x: Any, restrict: Sequence[int] | None = None) -> Any:
    """x - log Σ eˣ down the columns; `restrict`: over these entries alone, others are -inf."""
    if restrict is None:
        return eb.log_softmax(x, 0)
    numbers = _support(x, restrict, "log_softmax: restrict")
    kept = np.full(x.spec.shape, -np.inf)
    kept[numbers] = 0.0
    chosen = eb.stack([eb.pick(x, one) for one in numbers])
    return eb.add(eb.subtract(x, eb.logsumexp(chosen, 0)), kept)


def pickneglogsoftmax(x: Any, v: int) -> Any:
    """-log softmax(x)[v]."""
    if isinstance(x, ExpressionArray):
        raise EdBatchError("pickneglogsoftmax: a single ID for several mini-batch elements; expected ..._batch")
    return eb.cross_entropy(_vector(x), integer("pickneglogsoftmax: v", v))


def pickneglogsoftmax_batch(x: Any, vs: Sequence[int]) -> Any:
    """-log softmax(x)[v] of each entry of a mini-batch."""
    labels = _of_each(x, vs, "pickneglogsoftmax_batch")
    return eb.cross_entropy(_vector(x), np.array(labels) if isinstance(x, ExpressionArray) else labels[0])


def _vector(x: Any) -> Any:
    """A column as a vector."""
    return eb.reshape(x, x.spec.shape[:1]) if x.spec.shape[1:] == (1,) else x


def hinge(x: Any, v: int, m: float = 1.0) -> Any:
    """Σ over others of max(0, m + x - x[v])."""
    if isinstance(x, ExpressionArray):
        raise EdBatchError("hinge: a single index for several mini-batch elements; expected hinge_batch")
    return eb.hinge(_vector(x), integer("hinge: v", v), number("hinge: m", m))


def hinge_batch(x: Any, vs: Sequence[int], m: float = 1.0) -> Any:
    """`hinge` of each entry of a mini-batch."""
    labels = _of_each(x, vs, "hinge_batch")
    found = [eb.hinge(one, v, number("hinge: m", m)) for one, v in zip(_entries(_vector(x)), labels, strict=True)]
    return one_or_batch(eb.array(found))


def hinge_dim(x: Any, v: Sequence[int], d: int = 0, m: float = 1.0) -> Any:
    """`hinge` of each column (`d` 0) or row (`d` 1) of a matrix."""
    if len(x.spec.shape) != 2 or d not in (0, 1):
        raise EdBatchError(f"hinge_dim: expected a matrix and d of 0 or 1, got {x.spec.shape} and {d!r}")
    lines, labels = x if d else eb.transpose(x), integers("hinge_dim: v", v)
    if len(labels) != lines.spec.shape[0]:
        raise EdBatchError(f"hinge_dim: expected an index for each of {lines.spec.shape[0]}, got {len(labels)}")
    return eb.stack([eb.hinge(lines[at], label, number("hinge_dim: m", m)) for at, label in enumerate(labels)])


def _entries(x: Any) -> list[Any]:
    return list(x) if isinstance(x, ExpressionArray) else [x]


def _of_each(x: Any, vs: Sequence[int], name: str) -> list[int]:
    found = integers(f"{name}: vs", vs)
    count = len(x) if isinstance(x, ExpressionArray) else 1
    if len(found) != count:
        raise EdBatchError(
            f"{name}: the number of IDs ({len(found)}) did not match that of mini-batch elements ({count})"
        )
    return found


def _support(x: Any, numbers: Sequence[int], place: str) -> list[int]:
    """Numbers of entries of a vector."""
    found = integers(place, numbers)
    if max(found) >= x.spec.shape[0]:
        raise DynetIndexError(f"{place}: {max(found)} is out of range for {x.spec.shape[0]} entries")
    return found


def binary_log_loss(x: Any, y: Any) -> Any:
    """-Σ y log x + (1 - y) log(1 - x)."""
    return eb.binary_cross_entropy(x, y)


def squared_distance(x: Any, y: Any) -> Any:
    """Σ (x - y)²."""
    return eb.squared_distance(x, y)


def l1_distance(x: Any, y: Any) -> Any:
    """Σ |x - y|."""
    return eb.l1_distance(x, y)


def huber_distance(x: Any, y: Any, c: float = 1.345) -> Any:
    """Σ of ½d² where |d| is below c, and c (|d| - ½c) elsewhere."""
    return eb.huber(x, y, float(c))


def pairwise_rank_loss(x: Any, y: Any, m: float = 1.0) -> Any:
    """max(0, m - x + y)."""
    return eb.relu(eb.add(eb.subtract(y, x), float(m)))


def poisson_loss(log_lambda: Any, x: int) -> Any:
    """-log of Poisson's probability of x, given the logarithm of its mean."""
    count = integer("poisson_loss: x", x)
    falls = eb.subtract(eb.exp(log_lambda), eb.multiply(log_lambda, float(count)))
    return eb.add(falls, math.lgamma(count + 1))


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    """(x - mean) / standard deviation, times g, plus b."""
    moved = eb.subtract(x, eb.mean(x, 0))
    scale = eb.sqrt(eb.mean(eb.square(moved), 0))
    return eb.add(eb.multiply(eb.divide(moved, scale), g), b)


def weight_norm(w: Any, g: Any) -> Any:
    """w times g over its norm."""
    if g.spec.size != 1:
        raise EdBatchError(f"weight_norm: expected a gain of one entry, got dimension {g.spec.shape}")
    return multiply(eb.divide(w, eb.sqrt(sum_elems(eb.square(w)))), g)


def dropout(x: Any, p: float) -> Any:
    """Each entry 0 with probability p, else divided by 1 - p."""
    p = probability("dropout: p", p)
    return eb.dropout(x, p) if 0 < p < 1 else _edge(x, p)


def _edge(x: Any, p: float) -> Any:
    return node(x) if p <= 0 else eb.multiply(x, 0.0)


def _masked(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """x times a mask of a shape that broadcasts to its own."""
    p = probability("dropout: p", p)
    if not 0 < p < 1:
        return _edge(x, p)
    lead = (len(x),) if isinstance(x, ExpressionArray) else ()
    mask = (generator().random((*lead, *shape)) >= p) / (1 - p)
    return eb.multiply(x, constant(mask, x))


def dropout_dim(x: Any, d: int, p: float) -> Any:
    """`dropout` of all entries along an axis together."""
    return _masked(x, p, tuple(1 if axis == d else size for axis, size in enumerate(x.spec.shape)))


def dropout_batch(x: Any, p: float) -> Any:
    """`dropout` of entries of a mini-batch as wholes."""
    return _masked(x, p, ())


def block_dropout(x: Any, p: float) -> Any:
    """All entries 0 with probability p, else divided by 1 - p."""
    p = probability("block_dropout: p", p)
    if not 0 < p < 1:
        return _edge(x, p)
    return eb.multiply(x, 0.0 if generator().random() < p else 1 / (1 - p))


def noise(x: Any, stddev: float) -> Any:
    """x plus Gaussian numbers."""
    lead = (len(x),) if isinstance(x, ExpressionArray) else ()
    return eb.add(x, constant(generator().normal(0, positive("noise: stddev", stddev), (*lead, *x.spec.shape)), x))


def _threshold(x: Any) -> Any:
    """What `sparsemax` subtracts: of all means of the k largest entries less 1 / k the largest."""
    n = x.spec.size
    largest, _ = eb.top_k(x, n, 0)
    return eb.max(eb.multiply(eb.subtract(eb.cumsum(largest, 0), 1.0), 1 / np.arange(1, n + 1)), 0)


def sparsemax(x: Any) -> Any:
    """The nearest probabilities (Martins and Astudillo 2016)."""
    x = node(x)
    return eb.relu(eb.subtract(x, _threshold(x)))


def sparsemax_loss(x: Any, target_support: Sequence[int]) -> Any:
    """The loss that belongs to `sparsemax`, for target labels of equal probability."""
    x = node(x)
    least = _threshold(x)
    found = eb.relu(eb.subtract(x, least))
    q = np.zeros(x.spec.shape)
    support = _support(x, target_support, "sparsemax_loss: target_support")
    q[support] = 1.0 / len(support)
    squares = eb.multiply(sum_elems(eb.multiply(found, eb.add(x, least))), 0.5)  # of x and threshold, where x is larger
    return eb.add(eb.subtract(squares, sum_elems(eb.multiply(x, q))), float(0.5 * (q @ q)))


def constrained_softmax(x: Any, y: Any) -> Any:
    """The nearest probabilities, by divergence, that are nowhere above y.

    They are eˣ times a factor, or y where that is less. Entries that are y are those with the smallest y / eˣ: of the
    factors that follow from each number of them, the largest is right.
    """
    x, y = node(x), node(y)
    n = x.spec.size
    powers = eb.exp(eb.subtract(x, eb.stop_gradient(eb.max(x, 0))))
    _, order = eb.top_k(eb.neg(eb.divide(y, powers)), n, 0)
    limits, left = eb.gather(y, order, 0), eb.gather(powers, order, 0)
    held = eb.subtract(eb.cumsum(limits, 0), limits)  # of all before each
    rest = eb.flip(eb.cumsum(eb.flip(left, 0), 0), 0)
    return eb.minimum(y, eb.multiply(powers, eb.max(eb.divide(eb.subtract(1.0, held), rest), 0)))
