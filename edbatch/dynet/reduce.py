"""Sums, means, moments and largest entries: over all entries, axes, lists, and mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import multiply, subtract
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray


def alike(xs: Sequence[Any]) -> list[Any]:
    """Expressions as the first is: numbers with an axis, columns with one or two, single ones in mini-batches."""
    listed = list(xs)
    shape = listed[0].spec.shape or (1,)
    listed = [x if x.spec.shape == shape else _shaped(x, shape) for x in listed]
    batch = next((x for x in listed if isinstance(x, ExpressionArray)), None)
    return listed if batch is None else [x if isinstance(x, ExpressionArray) else spread(x, batch) for x in listed]


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    own = x.spec.shape
    if own[: len(shape)] + (1,) * (len(shape) - len(own)) != shape or any(size > 1 for size in own[len(shape) :]):
        raise EdBatchError(f"Mismatched input dimensions: {x.spec.shape} and {shape}")
    return eb.reshape(x, shape)


def spread(x: Any, like: Any) -> Any:
    """A single expression as a mini-batch like another."""
    if isinstance(x, ExpressionArray):
        return x
    node = eb.parameter(x) if isinstance(x, eb.Parameter) else x
    return like.graph.placed(node)


def of_list(name: str, call: Callable[[list[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    """A function of a list, which may hold numbers with an axis and without, and mini-batches."""

    def listed(xs: Sequence[Any]) -> Any:
        xs = xs if isinstance(xs, list) else list(xs or ())
        if not xs:
            raise AssertionError(f"List is empty, nothing to {name}.")
        first = xs[0]
        graph, spec = first.graph, first.spec
        for x in xs:
            if x.graph is not graph or x.spec is not spec:
                xs = alike(xs)
                break
        return call(xs)

    listed.__name__ = listed.__qualname__ = name
    return listed


esum = of_list("esum", lambda xs: eb.sum(xs))
average = of_list("average", lambda xs: eb.multiply(eb.sum(xs), 1.0 / len(xs)))
emax = of_list("emax", lambda xs: eb.maximum(xs))
logsumexp = of_list("logsumexp", lambda xs: eb.logsumexp(xs))


def _axes(x: Any) -> tuple[int, ...]:
    return tuple(range(len(x.spec.shape)))


def sum_elems(x: Any) -> Any:
    """Sum of all entries."""
    return eb.sum(x, _axes(x)) if x.spec.shape else x


def mean_elems(x: Any) -> Any:
    """Mean of all entries."""
    return eb.multiply(sum_elems(x), 1.0 / x.spec.size)


def moment_elems(x: Any, r: int) -> Any:
    """Mean of the r-th powers of all entries."""
    return mean_elems(eb.power(x, int(r)))


def std_elems(x: Any) -> Any:
    """Standard deviation of all entries."""
    return eb.sqrt(mean_elems(eb.square(eb.subtract(x, mean_elems(x)))))


def sum_batches(x: Any) -> Any:
    """Sum of the entries of a mini-batch."""
    return eb.sum(x) if isinstance(x, ExpressionArray) else x


def _count(x: Any) -> int:
    return len(x) if isinstance(x, ExpressionArray) else 1


def mean_batches(x: Any) -> Any:
    """Mean of the entries of a mini-batch."""
    return eb.multiply(sum_batches(x), 1.0 / _count(x))


def moment_batches(x: Any, r: int) -> Any:
    """Mean of the r-th powers of the entries of a mini-batch."""
    return mean_batches(eb.power(x, int(r)))


def std_batches(x: Any) -> Any:
    """Standard deviation over a mini-batch."""
    return eb.sqrt(mean_batches(eb.square(subtract(x, mean_batches(x)))))


def sum_dim(x: Any, d: Sequence[int], b: bool = False, n: int = 0) -> Any:
    """Sum over axes, and, if `b`, over the mini-batch; `n` is no matter, as in DyNet."""
    found = eb.sum(x, tuple(d)) if len(d) and x.spec.shape else x
    return sum_batches(found) if b else found


def _size(x: Any, d: Sequence[int], b: bool, n: int) -> float:
    """How many entries are summed over; `n` if that is given."""
    return n or float(np.prod([x.spec.shape[axis] for axis in d if x.spec.shape])) * (_count(x) if b else 1)


def mean_dim(x: Any, d: Sequence[int], b: bool, n: int = 0) -> Any:
    """Mean over axes, and, if `b`, over the mini-batch; `n`: what the sum is divided by instead."""
    return eb.multiply(sum_dim(x, d, b), 1.0 / _size(x, d, b, n))


def moment_dim(x: Any, d: Sequence[int], r: int, b: bool, n: int = 0) -> Any:
    """Mean of the r-th powers over axes; arguments as of `mean_dim`."""
    return mean_dim(eb.power(x, int(r)), d, b, n)


def std_dim(x: Any, d: Sequence[int], b: bool, n: int = 0) -> Any:
    """Standard deviation over axes; `n` is no matter, as in DyNet."""
    kept = tuple(1 if axis in d else size for axis, size in enumerate(x.spec.shape))
    mean = eb.reshape(mean_dim(x, d, b), kept)
    return eb.sqrt(mean_dim(eb.square(subtract(x, mean)), d, b))


def max_dim(x: Any, d: int = 0) -> Any:
    """Largest entries along an axis."""
    return eb.max(x, int(d)) if x.spec.shape else x


def min_dim(x: Any, d: int = 0) -> Any:
    """Smallest entries along an axis."""
    return eb.min(x, int(d)) if x.spec.shape else x


def logsumexp_dim(x: Any, d: int = 0) -> Any:
    """log Σ eˣ along an axis."""
    return eb.logsumexp(x, int(d)) if x.spec.shape else x


def cumsum(x: Any, d: int = 0) -> Any:
    """Sums of all entries up to each, along an axis."""
    return eb.cumsum(x, int(d)) if x.spec.shape else x


def squared_norm(x: Any) -> Any:
    """Σ x²."""
    return sum_elems(eb.square(x))


def l2_norm(x: Any) -> Any:
    """√Σ x²."""
    return eb.norm(x, _axes(x))


def dot_product(x: Any, y: Any) -> Any:
    """Σ x y."""
    return sum_elems(multiply(x, y))


def trace_of_product(x: Any, y: Any) -> Any:
    """Trace of x yᵀ."""
    return dot_product(x, y)
