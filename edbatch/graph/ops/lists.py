"""Ops over lists of expressions: all lengths are one type, so that they batch with one another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from edbatch.graph.expression import Expression
from edbatch.graph.expression_list import listed
from edbatch.graph.list_callers import over
from edbatch.graph.op import Op, Sample, declare, expect
from edbatch.graph.operand import Operand
from edbatch.graph.ops.matrix import dot
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.segments import segment_softmax, segment_sum
from edbatch.graph.ops.shape import reshape
from edbatch.graph.record import checked_number, checked_size
from edbatch.graph.spec import Shape


def _weighted_shape(weight: Shape, value: Shape) -> Shape:
    expect(weight == (), f"expected weights that are scalars, got some of shape {weight}")
    return value


WEIGHTED_SUM = declare(
    Op(
        "weighted_sum",
        _weighted_shape,
        variadic=True,
        composite=lambda weight, value: segment_sum(weight * value),
        samples=(Sample(((), (3,))), Sample(((), (2, 2))), Sample(((), ()))),
    )
)


def _attention_shape(query: Shape, key: Shape, value: Shape, heads: int, scale: float) -> Shape:
    expect(len(query) == 1 and key == query, f"expected a query and keys that are vectors of one size, got {key}")
    expect(len(value) == 1, f"expected values that are vectors, got some of shape {value}")
    fits = query[0] % heads == 0 and value[0] % heads == 0
    expect(fits, f"expected sizes of keys and values that {heads} heads share")
    return value


def _attention(query: Any, key: Any, value: Any, heads: int, scale: float) -> Expression:
    parts = [reshape(x, (heads, -1)) for x in (query, key, value)]
    weight = segment_softmax(sum(parts[0] * parts[1], axis=1, keepdims=True) * scale)
    return reshape(segment_sum(weight * parts[2]), value.shape)


ATTENTION = declare(
    Op(
        "attention",
        _attention_shape,
        variadic=True,
        singles=1,
        composite=_attention,
        samples=(
            Sample(((3,), (3,), (2,)), {"heads": 1, "scale": 0.5}),
            Sample(((4,), (4,), (6,)), {"heads": 2, "scale": 1.0}),
        ),
    )
)


def dots(query: Any, keys: Iterable[Any]) -> list[Expression]:
    """Inner products of a vector with each vector of a list.

    Args:
        query: vector [n].
        keys: vectors [n]; at least one.

    Raises:
        EdBatchError: there is no key, or sizes differ.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     scores = eb.dots(eb.input([1.0, 2.0]), [eb.input([3.0, 4.0]), eb.ones(2)])
        >>> [score.value() for score in scores]
        [np.float32(11.0), np.float32(3.0)]
    """
    return [dot(query, key) for key in listed("dots", keys)]


def weighted_sum(weights: Iterable[Any], values: Iterable[Any]) -> Expression:
    """Sum of the values of a list, each times its weight; lists of any length are one type.

    Args:
        weights: scalars; at least one.
        values: as many expressions of one shape.

    Raises:
        EdBatchError: lists are empty or of several lengths, or a list's shapes differ.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     weights = eb.softmax([eb.scalar(0.0), eb.scalar(0.0)])
        ...     y = eb.weighted_sum(weights, [eb.input([1.0, 2.0]), eb.input([3.0, 4.0])])
        >>> y.value()
        array([2., 3.], dtype=float32)
    """
    return _weighted_sum_call(None, weights, values)


_weighted_sum_call = over(WEIGHTED_SUM)


def attention(
    query: Any, keys: Iterable[Any], values: Iterable[Any], *, scale: float | bool | None = None, heads: int = 1
) -> Expression:
    """Scaled dot-product attention, softmax(scale · query · keys) · values, over lists; all lengths are one type.

    It is one node of the graph. Where the same lists are read at many steps, make an `ExpressionList` of each once.

    Args:
        query: vector [n].
        keys: vectors [n]; at least one.
        values: as many vectors [m].
        scale: what scores are multiplied with; None or True: 1 / √(n / heads); False: 1. Part of the type.
        heads: so many neighbouring parts of query, keys and values attend each by itself; n and m are multiples of it.

    Returns:
        A vector [m].

    Raises:
        EdBatchError: lists are empty or of several lengths, or sizes do not fit.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     keys = [eb.input([9.0, 0.0]), eb.input([0.0, 9.0])]
        ...     y = eb.attention(eb.input([9.0, 0.0]), keys, [eb.input([1.0]), eb.input([2.0])])
        >>> y.value()
        array([1.], dtype=float32)
    """
    return _attention_call(query, keys, values, (scale, heads))


def _attention_attributes(query: Any, given: tuple[Any, Any]) -> dict[str, Any]:
    scale, heads = given
    parts = checked_size("attention: heads", heads)
    return {"heads": parts, "scale": _scale(query, scale, parts)}


_attention_call = over(ATTENTION, _attention_attributes)


def _scale(query: Any, scale: float | bool | None, heads: int) -> float:
    if scale is False:
        return 1.0
    if scale is None or scale is True:
        # What is no operand is refused later, whatever it says of its shape.
        size = math.prod(query.shape) if isinstance(query, Operand | np.ndarray) else 1
        expect(size > 0, "attention: expected a query with entries, got an empty one")
        return 1.0 / math.sqrt(size / heads)
    found = checked_number("attention: scale", scale)
    expect(abs(found) < math.inf, f"attention: scale={found}: expected a finite number")
    return found
