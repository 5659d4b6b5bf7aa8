"""Losses, probabilities, dropout and normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import multiply
from edbatch.dynet.draws import generator
from edbatch.dynet.expression import one_or_batch
from edbatch.dynet.numeric import array_of, constant, linearised, node
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
    kept = np.full(x.spec.shape, -np.inf)
    kept[list(restrict)] = 0.0
    chosen = eb.stack([eb.pick(x, int(one)) for one in restrict])
    return eb.add(eb.subtract(x, eb.logsumexp(chosen, 0)), kept)


def pickneglogsoftmax(x: Any, v: int) -> Any:
    """-log softmax(x)[v]."""
    if isinstance(x, ExpressionArray):
        raise EdBatchError("pickneglogsoftmax: a single ID for several mini-batch elements; expected ..._batch")
    return eb.cross_entropy(x, int(v))


def pickneglogsoftmax_batch(x: Any, vs: Sequence[int]) -> Any:
    """-log softmax(x)[v] of each entry of a mini-batch."""
    _of_each(x, vs, "pickneglogsoftmax_batch")
    return one_or_batch(eb.cross_entropy(x, np.array(vs, np.int64)))


def hinge(x: Any, v: int, m: float = 1.0) -> Any:
    """Σ over others of max(0, m + x - x[v])."""
    if isinstance(x, ExpressionArray):
        raise EdBatchError("hinge: a single index for several mini-batch elements; expected hinge_batch")
    return eb.hinge(x, int(v), float(m))


def hinge_batch(x: Any, vs: Sequence[int], m: float = 1.0) -> Any:
    """`hinge` of each entry of a mini-batch."""
    _of_each(x, vs, "hinge_batch")
    found = [eb.hinge(one, int(v), float(m)) for one, v in zip(_entries(x), vs, strict=True)]
    return one_or_batch(eb.array(found))


def hinge_dim(x: Any, v: Sequence[int], d: int = 0, m: float = 1.0) -> Any:
    """`hinge` of each column (`d` 0) or row (`d` 1) of a matrix."""
    lines = x if d else eb.transpose(x)
    return eb.stack([eb.hinge(lines[number], int(label), float(m)) for number, label in enumerate(v)])


def _entries(x: Any) -> list[Any]:
    return list(x) if isinstance(x, ExpressionArray) else [x]


def _of_each(x: Any, vs: Sequence[int], name: str) -> None:
    count = len(x) if isinstance(x, ExpressionArray) else 1
    if len(vs) != count:
        raise EdBatchError(f"{name}: the number of IDs ({len(vs)}) did not match that of mini-batch elements ({count})")


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
    falls = eb.subtract(eb.exp(log_lambda), eb.multiply(log_lambda, float(x)))
    return eb.add(falls, math.lgamma(x + 1))


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    """(x - mean) / standard deviation, times g, plus b."""
    moved = eb.subtract(x, eb.mean(x, 0))
    scale = eb.sqrt(eb.mean(eb.square(moved), 0))
    return eb.add(eb.multiply(eb.divide(moved, scale), g), b)


def weight_norm(w: Any, g: Any) -> Any:
    """w times g over its norm."""
    return multiply(eb.divide(w, eb.sqrt(sum_elems(eb.square(w)))), g)


def dropout(x: Any, p: float) -> Any:
    """Each entry 0 with probability p, else divided by 1 - p."""
    return eb.dropout(x, p) if 0 < p < 1 else _edge(x, p)


def _edge(x: Any, p: float) -> Any:
    return node(x) if p <= 0 else eb.multiply(x, 0.0)


def _masked(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """x times a mask of a shape that broadcasts to its own."""
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
    if not 0 < p < 1:
        return _edge(x, p)
    return eb.multiply(x, 0.0 if generator().random() < p else 1 / (1 - p))


def noise(x: Any, stddev: float) -> Any:
    """x plus Gaussian numbers."""
    lead = (len(x),) if isinstance(x, ExpressionArray) else ()
    return eb.add(x, constant(generator().normal(0, stddev, (*lead, *x.spec.shape)), x))


def _sparsemax(z: np.ndarray) -> np.ndarray:
    down = -np.sort(-z)
    sums = np.cumsum(down)
    support = np.flatnonzero(1 + np.arange(1, len(z) + 1) * down > sums)[-1]
    found: np.ndarray = np.maximum(z - (sums[support] - 1) / (support + 1), 0)
    return found


def _by_entry(x: Any, value: Any, jacobian: Any) -> Any:
    """A function of a vector, of each in a mini-batch, by its value and its derivatives."""
    x = node(x)
    at = array_of(x)
    if not isinstance(x, ExpressionArray):
        found = value(at)
        return linearised(x, found, at, jacobian(at, found))
    rows = [value(row) for row in at]
    return linearised(x, np.array(rows), at, np.array([jacobian(a, r) for a, r in zip(at, rows, strict=True)]))


def sparsemax(x: Any) -> Any:
    """The nearest probabilities (Martins and Astudillo 2016)."""

    def jacobian(_: np.ndarray, found: np.ndarray) -> np.ndarray:
        held = (found > 0).astype(float)
        rates: np.ndarray = np.diag(held) - np.outer(held, held) / held.sum()
        return rates

    return _by_entry(x, _sparsemax, jacobian)


def sparsemax_loss(x: Any, target_support: Sequence[int]) -> Any:
    """The loss that belongs to `sparsemax`, for target labels of equal probability."""
    x = node(x)
    at = array_of(x)
    found = _sparsemax(at)
    held = found > 0
    tau = (at[held].sum() - 1) / held.sum()
    q = np.zeros_like(at)
    q[list(target_support)] = 1.0 / len(target_support)
    value = -(q @ at) + 0.5 * np.sum(np.where(held, at**2 - tau**2, 0)) + 0.5 * (q @ q)
    return eb.add(float(value), eb.dot(found - q, eb.subtract(x, at)))


def constrained_softmax(x: Any, y: Any) -> Any:
    """The nearest probabilities, by divergence, that are nowhere above y."""
    x, y = node(x), node(y)
    logits, limits = array_of(x), array_of(y)
    free = np.ones(len(logits), bool)
    found = np.zeros_like(logits)
    while True:
        mass = 1 - limits[~free].sum()
        powers = np.where(free, np.exp(logits - logits[free].max()), 0.0)
        found = np.where(free, mass * powers / powers.sum(), limits)
        over = free & (found > limits)
        if not over.any():
            break
        free &= ~over
    held, mass = free.astype(float), 1 - limits[~free].sum()
    p = found * held
    by_x = np.diag(p) - np.outer(p, p) / mass
    by_y = np.diag(1 - held) - np.outer(p, 1 - held) / mass
    first = linearised(x, found, logits, by_x)
    return eb.add(first, eb.matmul(eb.input(by_y), eb.subtract(y, limits)))
