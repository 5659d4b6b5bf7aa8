"""Reductions over the elements of a list, in what is written for one element of it (see `op.Op.composite`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.graph.expression import Expression
from edbatch.graph.node_type import intern, node_type
from edbatch.graph.op import Op
from edbatch.graph.ops.elementwise import alike, clip, exp, greater, is_zero, log, where
from edbatch.graph.ops.shape import stop_gradient
from edbatch.graph.sources import ONES
from edbatch.graph.spec import spec_of


def _segments(reduction: str, gradient: Callable[..., Expression]) -> Callable[[Expression], Expression]:
    op = Op(
        f"segment_{reduction}",
        lambda shape: shape,
        reduction=reduction,
        segments=True,
        gradient=gradient,
        chooses=reduction != "sum",
    )
    return lambda x: x.graph.add(node_type(op, (), (x.spec,)), (x.id,))


def to_the_largest(g: Any, out: Any, x: Any, total: Callable[[Any], Expression]) -> Expression:
    """A gradient, divided evenly among what is the result; NaN's among all NaN."""
    among = alike(x, out)
    return where(among, g / total(among), 0)


_sum = _segments("sum", lambda g, out, x: g)
_max = _segments("max", lambda g, out, x: to_the_largest(g, out, x, segment_sum))
_min = _segments("min", lambda g, out, x: to_the_largest(g, out, x, segment_sum))


def segment_count(x: Expression) -> Expression:
    """How many elements there are, in the shape of x."""
    each = spec_of(x.shape, x.spec.dtype, each=True)
    return _sum(x.graph.add(intern(ONES, (), (), each), ()))


def segment_sum(x: Expression) -> Expression:
    """The sum over the elements, entry by entry; of a value that all have, too."""
    return _sum(x) if x.spec.each else x * segment_count(x)


def segment_max(x: Expression) -> Expression:
    """The largest of the elements, entry by entry; equal ones have equal shares of the gradient, NaN is the result."""
    return _max(x) if x.spec.each else x


def segment_min(x: Expression) -> Expression:
    """The smallest of the elements; see `segment_max`."""
    return _min(x) if x.spec.each else x


def segment_mean(x: Expression) -> Expression:
    """The mean of the elements, entry by entry."""
    return segment_sum(x) / segment_count(x)


def _by_weight(g: Any, out: Any, x: Any) -> Expression:
    """The result is rounded, which counts where it is large: the weights are made to add up to 1.

    That of an infinite entry is NaN, and its alone.
    """
    weight = exp(x - where(alike(out, -np.inf), 0, out))
    total = segment_sum(weight)
    return weight * (g / where(greater(total, 0), total, 1))


def _logsumexp(x: Any) -> Expression:
    return logsumexp_by(segment_max, segment_sum, x)


_LOGSUMEXP = Op(
    "segment_logsumexp",
    lambda shape: shape,
    segments=True,
    unrolled=_logsumexp,
    gradient=_by_weight,
)


def segment_logsumexp(x: Expression) -> Expression:
    """log Σ eˣ over the elements, entry by entry; elements of -inf contribute nothing, all of them give -inf."""
    return x.graph.add(node_type(_LOGSUMEXP, (), (x.spec,)), (x.id,)) if x.spec.each else _logsumexp(x)


def logsumexp_by(largest: Callable[[Any], Expression], total: Callable[[Any], Expression], x: Any) -> Expression:
    """log Σ eˣ, given the reductions."""
    top = stop_gradient(largest(x))
    finite = float(np.finfo(x.spec.dtype).max)
    powers = total(exp(x - clip(top, -finite, finite)))
    return log(powers + is_zero(powers)) + top  # the total is at least 1, or 0 where all entries are -inf


def segment_softmax(x: Expression) -> Expression:
    """Weights of the elements, which add up to 1, entry by entry."""
    power = exp(x - stop_gradient(segment_max(x)))
    return power * (1 / segment_sum(power))
