"""Reductions: over the axes of one value, and over lists of values (segment reductions)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.list_callers import variadic
from edbatch.graph.op import OPS, Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import Attributes, called_as, named, recorded
from edbatch.graph.operand import Operand
from edbatch.graph.ops.elementwise import alike, is_zero, maximum2, minimum2, sqrt, square, where
from edbatch.graph.ops.segments import (
    logsumexp_by,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_min,
    segment_sum,
    to_the_largest,
)
from edbatch.graph.ops.shape import checked_axis, reshape, stop_gradient
from edbatch.graph.record import entries_of, own_zeros, to_expression
from edbatch.graph.spec import Shape

Axis = int | Sequence[int] | None


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape rule of reductions over axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def samples_over_axes() -> tuple[Sample, ...]:
    """The samples of these."""
    cases = [((5,), (0,), False), ((2, 3), (0, 1), False), ((2, 3), (1,), False), ((2, 3), (0,), True)]
    return tuple(Sample((shape,), {"axes": axes, "keepdims": keepdims}) for shape, axes, keepdims in cases)


def over_axes(
    op: Op, check: Callable[[str, np.dtype, int], None] = lambda *_: None, several: bool = True
) -> Callable[..., Expression]:
    """The caller of ops over axes of one operand: over one, all, or, where it may, several.

    `check` raises if (op and operand, its dtype, how many entries are reduced to one) make no sense.
    """

    def attributes(x: Any, axis: Axis = None, keepdims: bool = False) -> Attributes:
        spec, place = x.spec, f"{op.name}({x.spec!r})"
        if not several and axis is not None and not isinstance(axis, int | np.integer):
            raise EdBatchError(f"{op.name}: expected an axis, or None for all, got {shown(axis)}")
        given = range(len(spec.shape)) if axis is None else entries_of(axis)
        axes = tuple(sorted(checked_axis(op.name, spec, a) for a in given))
        expect(len(set(axes)) == len(axes), f"{place}: axis {axis} names an axis twice")
        expect(isinstance(keepdims, int | np.bool_), f"{place}: keepdims={shown(keepdims)}; expected a bool")
        check(place, spec.dtype, math.prod(spec.shape[axis] for axis in axes))
        return {"axes": axes, "keepdims": bool(keepdims)}

    return recorded(op)(named(op, attributes))


def _reduction(name: str, slope: Callable) -> Callable[..., Expression]:
    """Declare a reduction over axes that kernels have.

    `slope` makes of the gradient of the result and the result, both with the reduced axes kept at size 1, x and the
    axes the gradient of x.
    """

    def gradient(g: Any, out: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Expression:
        kept = reduced_shape(x.shape, axes, True)
        return slope(reshape(g, kept), reshape(out, kept), x, axes)

    chooses = name in ("max", "min")
    op = Op(name, reduced_shape, reduction=name, gradient=gradient, chooses=chooses, samples=samples_over_axes())
    return over_axes(declare(op))


def _written(name: str, body: Callable[..., Expression]) -> Callable[..., Expression]:
    """Declare a reduction that is written with others: `body(x, axes)`, with the reduced axes kept at size 1."""

    def reduced(x: Any, axes: tuple[int, ...], keepdims: bool) -> Expression:
        found = body(x, axes)
        return found if keepdims else reshape(found, reduced_shape(x.shape, axes, False))

    return over_axes(composite(name, reduced_shape, reduced, samples_over_axes()))


def _over_list(
    name: str, called: str, reduction: Callable, unrolled: Callable | None = None, gradient: Callable | None = None
) -> Callable[[Any], Expression]:
    """Declare a reduction over a list, one type for all lengths.

    Args:
        called: what users call it.
        reduction: over elements.
        unrolled, gradient: of what others are made of in a cell, see `Op`.
    """
    op = Op(
        name,
        lambda shape: shape,
        variadic=True,
        composite=reduction,
        unrolled=unrolled,
        gradient=gradient,
        chooses=reduction in (segment_max, segment_min),
        samples=(Sample(((3,),) * 4), Sample(((),) * 3), Sample(((2, 2),))),
    )
    return variadic(declare(op), called)


def _total(*xs: Any) -> Expression:
    return reduce(add, xs)


def _mean(x: Any, axes: tuple[int, ...]) -> Expression:
    return sum(x, axes, keepdims=True) / math.prod(x.shape[axis] for axis in axes)


def _logsumexp(x: Any, axes: tuple[int, ...]) -> Expression:
    return logsumexp_by(partial(max, axis=axes, keepdims=True), partial(sum, axis=axes, keepdims=True), x)


def centred(x: Any, axes: Axis) -> Expression:
    """x without its mean, nor what was lost by rounding the mean of large entries."""
    found = x - mean(x, axes, keepdims=True)
    return found - stop_gradient(mean(found, axes, keepdims=True))


def _std(x: Any, axes: tuple[int, ...]) -> Expression:
    from_mean = centred(x, axes)
    far = stop_gradient(max(abs(from_mean), axes, keepdims=True))
    scale = far + is_zero(far)
    return scale * _root(mean(square(from_mean / scale), axes, keepdims=True))


def _root(x: Expression) -> Expression:
    """√x, through which no gradient flows where x is 0: its slope there is infinite, that of what has a root is not."""
    zero = is_zero(x)
    return sqrt(x + zero) - zero


def _to_the_largest(g: Any, out: Any, x: Any, axes: Axis) -> Any:
    return to_the_largest(g, out, x, lambda y: sum(y, axes, keepdims=True))


_sum_over = _reduction("sum", lambda g, out, x, axes: g)
_max_over = _reduction("max", _to_the_largest)
_min_over = _reduction("min", _to_the_largest)
_mean_over = _written("mean", _mean)
_logsumexp_over = _written("logsumexp", _logsumexp)


def _to_the_largest_of(g: Any, out: Any, *xs: Any) -> list[Expression]:
    """Divided evenly among the elements that are the result; NaN's among all NaN."""
    among = [alike(x, out) for x in xs]
    each = g / _total(*among)
    return [where(one, each, 0) for one in among]


_sum_list_of = _over_list("sum_list", "sum", segment_sum, _total, lambda g, out, *xs: [g] * len(xs))
_mean_list_of = _over_list("mean_list", "mean", segment_mean)
_maximum_list_of = _over_list("maximum_list", "max", segment_max, lambda *xs: reduce(maximum2, xs), _to_the_largest_of)
_minimum_list_of = _over_list("minimum_list", "min", segment_min, lambda *xs: reduce(minimum2, xs), _to_the_largest_of)
_elementwise_maximum_of = variadic(OPS["maximum_list"], "maximum")
_elementwise_minimum_of = variadic(OPS["minimum_list"], "minimum")
_logsumexp_list_of = _over_list("logsumexp_list", "logsumexp", segment_logsumexp)


def is_list(name: str, x: Any, axis: Axis = None, keepdims: bool = False) -> bool:
    """Whether x is several operands, in whatever can be gone through, and not one."""
    if x.__class__ is Expression:
        return False
    if x.__class__ is not list:  # as most are: a question that classes answer themselves takes 70 ns
        if isinstance(x, ExpressionArray):
            return axis is None and keepdims is False  # else it is of each entry
        if isinstance(x, Operand | np.ndarray) or not isinstance(x, Iterable):
            return False
    if axis is not None or (keepdims is not False and checked_flag(f"{name}: keepdims", keepdims)):
        raise EdBatchError(f"{name} of a list: expected no axis and no keepdims, which one operand has")
    return True


def sum(x: Any, axis: Axis = None, keepdims: bool = False, *, like: Any = None) -> Expression:
    """Sum of a list of expressions of one shape, or of one expression over axes.

    Sums of lists of any length are one type: they batch with one another.

    An array of expressions is the list of its entries here; with an axis or `keepdims`, and in a cell that is called
    with the array, it stands for each entry, as it does for ops that take no lists.

    Args:
        x: expressions of one shape (a list, a generator, an array of expressions ...), or one expression.
        axis: for one expression: an axis or several; None means all.
        keepdims: leave reduced axes in with size 1.
        like: an expression; the sum of an empty list is zeros of its shape.

    Raises:
        EdBatchError: an empty list without `like`, `like` without a list, expressions of different shapes, or no such
            axis.

    Example: eb.sum([eb.input([1.0, 2.0]), eb.input([3.0, 4.0])]) -> [4. 6.]
    """
    if not is_list("sum", x, axis, keepdims):
        if like is not None:
            raise EdBatchError(f"sum: like: expected it with a list, which may be empty, got it with {shown(x)}")
        return _sum_over(x, axis, keepdims)
    if like is None:
        return _sum_list_of(x)
    like = to_expression("sum: like", like)
    listed = list(x)
    return _sum_list_of(listed) if listed else own_zeros(like.graph, like.shape)


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
    """Mean of a list of expressions of one shape, or of one expression over axes; arguments as in `sum`.

    Example: eb.mean([eb.scalar(1), eb.scalar(2)]) -> 1.5
    """
    return _mean_list_of(x) if is_list("mean", x, axis, keepdims) else _mean_over(x, axis, keepdims)


def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
    """log Σ eˣ without overflow, of a list or over axes; arguments as in `sum`.

    Example: eb.logsumexp(eb.input([1000.0, 1000.0])) -> 1000.69...
    """
    return _logsumexp_list_of(x) if is_list("logsumexp", x, axis, keepdims) else _logsumexp_over(x, axis, keepdims)


@called_as(_written("std", _std))
def std(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Standard deviation over axes (divided by n, not n - 1).

    Example: eb.std(eb.input([1.0, 3.0])) -> 1.0
    """


@called_as(_written("norm", lambda x, axes: _root(sum(square(x), axes, keepdims=True))))
def norm(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Euclidean norm over axes.

    Example: eb.norm(eb.input([3.0, 4.0])) -> 5.0
    """


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
    """Largest entry of one expression over axes, or entry-wise maximum of a list; arguments as in `sum`.

    Where several are equal, each has the same share of the gradient, as in PyTorch's `amax`. A NaN is the result, and
    has the gradient, which several share; `amax` then gives every entry NaN.

    Example: eb.max(eb.input([[1.0, 3.0], [5.0, 2.0]]), axis=0) -> [5. 3.]
    """
    return _maximum_list_of(x) if is_list("max", x, axis, keepdims) else _max_over(x, axis, keepdims)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Expression:
    """Smallest entry of one expression over axes, or entry-wise minimum of a list; otherwise as `max`.

    Example: eb.min(eb.input([3.0, 1.0])) -> 1.0
    """
    return _minimum_list_of(x) if is_list("min", x, axis, keepdims) else _min_over(x, axis, keepdims)


def maximum(a: Any, b: Any = None) -> Expression:
    """Entry-wise maximum of two operands (which broadcast), or of a list of expressions of one shape.

    Where several are equal, each has the same share of the gradient, as in PyTorch. A NaN is the result, and has the
    gradient, which several share; PyTorch gives it whole to both operands.

    Example: eb.maximum([eb.input([1.0, 4.0]), eb.input([3.0, 2.0]), eb.zeros(2)]) -> [3. 4.]
    """
    if b is not None:
        return maximum2(a, b)
    expect(is_list("maximum", a), "maximum: expected two operands or a list; max(x) is the largest entry of one")
    return _elementwise_maximum_of(a)


def minimum(a: Any, b: Any = None) -> Expression:
    """Entry-wise minimum of two operands (which broadcast), or of a list; otherwise as `maximum`.

    Example: eb.minimum(eb.input([1.0, 4.0]), 2) -> [1. 2.]
    """
    if b is not None:
        return minimum2(a, b)
    expect(is_list("minimum", a), "minimum: expected two operands or a list; min(x) is the smallest entry of one")
    return _elementwise_minimum_of(a)
