"""The k largest entries along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.op import Sample, composite, expect
from edbatch.graph.ops.compare import alike, equal, greater, less, not_equal, where
from edbatch.graph.ops.indices import GATHER, first, ramp
from edbatch.graph.ops.place import concatenate
from edbatch.graph.ops.reduce import max, sum
from edbatch.graph.ops.shape import checked_axis, reshape, swapaxes, unsqueeze
from edbatch.graph.record import array_input, checked_size, record, to_expression
from edbatch.graph.spec import Shape

# Comparing all pairs is one kernel, but takes long for many entries. Above so many, and so many for each that is asked
# for, the largest are taken one by one.
_FEW, _FEW_EACH = 32, 16


def _shape(shape: Shape, k: int, axis: int) -> Shape:
    expect(0 < k <= shape[axis], f"expected k in [1, {shape[axis]}], got {k}")
    return (*shape[:axis], k, *shape[axis + 1 :])


def _by_rank(rank: Expression, values: Expression, count: int) -> Expression:
    """[..., count]: of the entries of the last axis, those whose ranks are 0, 1, ..."""
    named = equal(unsqueeze(rank, -2), reshape(ramp(count), (count, 1)))
    return sum(where(named, unsqueeze(values, -2), 0), -1)


def _all_ranked(x: Expression, k: int) -> Expression:
    """By how many entries come before each: larger ones, and equal ones with a smaller number; NaN before all."""
    size = x.shape[-1]
    mine, other = unsqueeze(x, -1), unsqueeze(x, -2)
    larger = greater(other, mine) + greater(not_equal(other, other), not_equal(mine, mine))
    earlier = array_input(current_graph(), np.tri(size, k=-1))
    return _by_rank(sum(larger + alike(other, mine) * earlier, -1), ramp(size), k)


def _one_by_one(x: Expression, k: int) -> Expression:
    """The largest, then the largest of what is left, and so on."""
    numbers = ramp(x.shape[-1])
    left: Any = not_equal(numbers, -1)
    found: list[Expression] = []
    for _ in range(k):
        largest = max(where(left, x, -np.inf), -1, keepdims=True)
        found.append(first(alike(x, largest) * left, (-1, True)))
        left = left * not_equal(numbers, found[-1])
    return concatenate(found, -1)


def _numbers(x: Any, k: int, axis: int) -> Expression:
    moved = swapaxes(x, axis, -1)
    few = x.shape[axis] <= _FEW or x.shape[axis] <= _FEW_EACH * k
    return swapaxes(_all_ranked(moved, k) if few else _one_by_one(moved, k), axis, -1)


def _in_order(x: Any, k: int, axis: int) -> Expression:
    numbers = swapaxes(_numbers(x, k, axis), axis, -1)
    rank = sum(less(unsqueeze(numbers, -2), unsqueeze(numbers, -1)), -1)
    return record(GATHER, (x, swapaxes(_by_rank(rank, numbers, k), axis, -1)), axis=axis)


_SAMPLES = (
    Sample(((5,),), {"k": 3, "axis": 0}),
    Sample(((3, 4),), {"k": 1, "axis": 1}),
    Sample(((3, 2),), {"k": 3, "axis": 0}),
    Sample(((33,),), {"k": 2, "axis": 0}),
)
TOP_K = composite("top_k", _shape, _numbers, _SAMPLES, flat=True)
K_MAX_POOL = composite("k_max_pool", _shape, _in_order, _SAMPLES)


def _given(name: str, x: Any, k: Any, axis: Any) -> tuple[Expression, int, int]:
    x = to_expression(name, x)
    return x, checked_size(f"{name}({x.spec!r}): k", k), checked_axis(name, x.spec, axis)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Expression, Expression]:
    """The k largest entries along an axis, the largest first, and their numbers; PyTorch's `topk`.

    Of equal entries the first comes first; NaN is larger than all numbers. Gradients of the values go to where they are
    from, through the numbers none flows.

    Args:
        x: expression with at least one axis.
        k: how many; part of the type.
        axis: of one sample's value.

    Returns:
        values and numbers: both of the shape of `x` with k entries along the axis, and of its dtype; the numbers are an
        index for `gather`.

    Raises:
        EdBatchError: there are fewer than k entries, or there is no such axis.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     values, numbers = eb.top_k(eb.input([1.0, 4.0, 3.0, 4.0]), 3)
        >>> values.value(), numbers.value()
        (array([4., 4., 3.], dtype=float32), array([1., 3., 2.], dtype=float32))
    """
    x, k, at = _given("top_k", x, k, axis)
    numbers = record(TOP_K, (x,), k=k, axis=at)
    return record(GATHER, (x, numbers), axis=at), numbers


def k_max_pool(x: Any, k: int, axis: int = -1) -> Expression:
    """The k largest entries along an axis in the order in which they are there (Kalchbrenner et al. 2014).

    Arguments and errors are those of `top_k`.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.k_max_pool(eb.input([1.0, 4.0, 3.0, 5.0]), 3)
        >>> y.value()
        array([4., 3., 5.], dtype=float32)
    """
    x, k, at = _given("k_max_pool", x, k, axis)
    return record(K_MAX_POOL, (x,), k=k, axis=at)
