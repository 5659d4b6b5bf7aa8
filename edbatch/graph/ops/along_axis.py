"""The k largest entries along an axis, and sums of all entries up to each."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, Sample, composite, declare, expect, no_gradient
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.elementwise import where
from edbatch.graph.ops.indices import GATHER, among_zeros, gather, told_apart
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.shape import checked_axis, embed, reshape, swapaxes, unsqueeze
from edbatch.graph.record import array_input, checked_size, record
from edbatch.graph.spec import Shape


def _shape(shape: Shape, k: int, axis: int) -> Shape:
    expect(0 < k <= shape[axis], f"expected k in [1, {shape[axis]}], got {k}")
    return (*shape[:axis], k, *shape[axis + 1 :])


def _in_order(x: Any, k: int, axis: int) -> Expression:
    numbers = record(TOP_K, (x,), k=k, axis=axis)
    smallest_first = record(TOP_K, (-numbers,), k=k, axis=axis)
    return record(GATHER, (x, record(GATHER, (numbers, smallest_first), axis=axis)), axis=axis)


_SAMPLES = tuple(
    Sample((shape,), {"k": k, "axis": axis})
    for shape, k, axis in (((5,), 3, 0), ((3, 4), 1, 1), ((3, 2), 3, 0), ((33,), 2, 0))
)
TOP_K = declare(Op("top_k", _shape, gradient=no_gradient, samples=_SAMPLES))  # their numbers


def _attributes(name: str, x: Any, k: int, axis: int) -> Attributes:
    place, at = f"{name}({x.spec!r})", checked_axis(name, x.spec, axis)
    found = {"k": checked_size(f"{place}: k", k), "axis": at}
    told_apart(place, x.spec.dtype, x.spec.shape[at])
    return found


_top_k = recorded(TOP_K)(lambda x, k, axis: _attributes("top_k", x, k, axis))


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Expression, Expression]:
    """The k largest entries along an axis, the largest first, and their numbers; PyTorch's `topk`.

    Of equal entries the first comes first; NaN is larger than all numbers. Gradients of the values go to where they are
    from, through the numbers none flows.

    Returns:
        values and numbers: both of the shape of `x` with k (part of the type) entries along the axis of one sample's
        value, and of its dtype; the numbers are an index for `gather`.

    Raises:
        EdBatchError: there are fewer than k entries, or more than the dtype tells apart, or there is no such axis.

    Example: eb.top_k(eb.input([1.0, 4.0, 3.0, 4.0]), 3)[1] -> [1. 3. 2.]
    """
    numbers = _top_k(x, k, axis)
    return gather(x, numbers, axis), numbers


@recorded(composite("k_max_pool", _shape, _in_order, _SAMPLES))
def k_max_pool(x: Any, k: int, axis: int = -1) -> Attributes:
    """The k largest entries along an axis in the order in which they are there (Kalchbrenner et al. 2014).

    Arguments and errors are those of `top_k`.

    Example: eb.k_max_pool(eb.input([1.0, 4.0, 3.0, 5.0]), 3) -> [4. 3. 5.]
    """
    return _attributes("k_max_pool", x, k, axis)


# Of so many entries each sum is added up by itself, in one kernel; of more, block by block.
_BLOCK = 32


def _running(x: Expression) -> Expression:
    """Along the last axis."""
    *lead, size = x.shape
    if size <= _BLOCK:
        lower = array_input(current_graph(), np.tri(size))
        return sum(where(lower, unsqueeze(x, -2), 0), -1)
    blocks = -(-size // _BLOCK)
    inside = _running(reshape(among_zeros(x, (*lead, blocks * _BLOCK)), (*lead, blocks, _BLOCK)))
    totals = _running(inside[..., -1])[..., :-1]
    before = embed(totals, (*lead, blocks), (*((0, n, 1) for n in lead), (1, blocks, 1)))
    return reshape(inside + unsqueeze(before, -1), (*lead, blocks * _BLOCK))[..., :size]


@recorded(
    composite(
        "cumsum",
        lambda shape, axis: shape,
        lambda x, axis: swapaxes(_running(swapaxes(x, axis, -1)), axis, -1),
        tuple(Sample((s,), {"axis": axis}) for s, axis in (((5,), 0), ((3, 4), 0), ((2, 1), 1), ((70,), 0))),
    )
)
def cumsum(x: Any, axis: int) -> Attributes:
    """Along an axis of one sample's value, the sum of all entries up to each, in the shape of `x`; NumPy's `cumsum`.

    Raises:
        EdBatchError: there is no such axis.

    Example: eb.cumsum(eb.input([1.0, 2.0, 3.0]), 0) -> [1. 3. 6.]
    """
    return {"axis": checked_axis("cumsum", x.spec, axis)}
