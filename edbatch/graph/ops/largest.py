"""The k largest entries along an axis."""

from __future__ import annotations

from typing import Any

from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, Sample, composite, declare, expect, no_gradient
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.indices import GATHER, gather, told_apart
from edbatch.graph.ops.shape import checked_axis
from edbatch.graph.record import checked_size, record
from edbatch.graph.spec import Shape


def _shape(shape: Shape, k: int, axis: int) -> Shape:
    expect(0 < k <= shape[axis], f"expected k in [1, {shape[axis]}], got {k}")
    return (*shape[:axis], k, *shape[axis + 1 :])


def _in_order(x: Any, k: int, axis: int) -> Expression:
    numbers = record(TOP_K, (x,), k=k, axis=axis)
    smallest_first = record(TOP_K, (-numbers,), k=k, axis=axis)
    return record(GATHER, (x, record(GATHER, (numbers, smallest_first), axis=axis)), axis=axis)


_SAMPLES = (
    Sample(((5,),), {"k": 3, "axis": 0}),
    Sample(((3, 4),), {"k": 1, "axis": 1}),
    Sample(((3, 2),), {"k": 3, "axis": 0}),
    Sample(((33,),), {"k": 2, "axis": 0}),
)
TOP_K = declare(Op("top_k", _shape, gradient=no_gradient, samples=_SAMPLES))  # their numbers
K_MAX_POOL = composite("k_max_pool", _shape, _in_order, _SAMPLES)


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

    Args:
        x: expression with at least one axis.
        k: how many; part of the type.
        axis: of one sample's value.

    Returns:
        values and numbers: both of the shape of `x` with k entries along the axis, and of its dtype; the numbers are an
        index for `gather`.

    Raises:
        EdBatchError: there are fewer than k entries, or more than the dtype tells apart, or there is no such axis.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     values, numbers = eb.top_k(eb.input([1.0, 4.0, 3.0, 4.0]), 3)
        >>> values.value(), numbers.value()
        (array([4., 4., 3.], dtype=float32), array([1., 3., 2.], dtype=float32))
    """
    numbers = _top_k(x, k, axis)
    return gather(x, numbers, axis), numbers


@recorded(K_MAX_POOL)
def k_max_pool(x: Any, k: int, axis: int = -1) -> Attributes:
    """The k largest entries along an axis in the order in which they are there (Kalchbrenner et al. 2014).

    Arguments and errors are those of `top_k`.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.k_max_pool(eb.input([1.0, 4.0, 3.0, 5.0]), 3)
        >>> y.value()
        array([4., 3., 5.], dtype=float32)
    """
    return _attributes("k_max_pool", x, k, axis)
