"""Ops over lists of expressions: all lengths are one type, so that they batch with one another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.cell.trace import Trace
from edbatch.graph.expression import Expression
from edbatch.graph.expression_list import ExpressionList, listed
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Equations, Op, Sample, declare, expect
from edbatch.graph.ops.elementwise import multiply
from edbatch.graph.ops.matrix import dot
from edbatch.graph.ops.normalize import softmax
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.shape import reshape
from edbatch.graph.record import checked_number, checked_size, graph_of, to_node, to_operand
from edbatch.graph.spec import Shape, Spec


def over_lists(
    op: Op, singles: tuple[Any, ...], lists: tuple[Iterable[Any], ...], attributes: tuple[tuple[str, Any], ...] = ()
) -> Expression:
    """Record an op over lists: a node; in a cell, where lists have a fixed length, what it is written with.

    Args:
        singles: its operands before the lists.
        lists: all of one length.
        attributes: of the type.

    Raises:
        EdBatchError: lists are empty or of several lengths, or operands do not fit.
    """
    expressions = [x for x in singles if isinstance(x, Expression)]
    graph = expressions[0].graph if expressions else None
    read = [listed(op.name, xs, graph) for xs in lists]
    graph = read[0].graph
    if any(len(xs) != len(read[0]) for xs in read):
        lengths = " and ".join(str(len(xs)) for xs in read)
        raise EdBatchError(f"{op.name}: expected lists of one length, got {lengths}")
    graph_of(op.name, (*expressions, *(xs[0] for xs in read)))
    nodes = [to_node(graph, to_operand(op.name, graph, x)) for x in singles]
    type = node_type(op, attributes, (*(x.spec for x in nodes), *(xs.spec_of_each for xs in read)))
    if isinstance(graph, Trace):
        if op.unrolled is None:
            raise EdBatchError(f"{op.name} in a cell: nothing says what it is of a list of a fixed length")
        found: Expression = op.unrolled(*nodes, *(x for xs in read for x in xs), **dict(attributes))
        return found
    args = [len(nodes) + len(read) * len(read[0]), *(x.id for x in nodes)]
    for xs in read:
        args += xs.ids
    return graph.add(type, args)


def _halves(xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return xs[: len(xs) // 2], xs[len(xs) // 2 :]


def _weighted_shape(weight: Shape, value: Shape) -> Shape:
    expect(weight == (), f"expected weights that are scalars, got some of shape {weight}")
    return value


def _weighted(*both: Any) -> Expression:
    return sum([multiply(weight, value) for weight, value in zip(*_halves(both), strict=True)])


WEIGHTED_SUM = declare(
    Op(
        "weighted_sum",
        _weighted_shape,
        variadic=True,
        equations=Equations(
            ("weight[e]", "value[e,d]"),
            "out[d] = sum_e(weight * value)",
            lambda weight, value: {"d": math.prod(value)},
        ),
        unrolled=_weighted,
        samples=(Sample(((), (3,))), Sample(((), (2, 2))), Sample(((), ()))),
    )
)


def _attention_shape(query: Shape, key: Shape, value: Shape, heads: int, scale: float) -> Shape:
    expect(len(query) == 1 and key == query, f"expected a query and keys that are vectors of one size, got {key}")
    expect(len(value) == 1, f"expected values that are vectors, got some of shape {value}")
    fits = query[0] % heads == 0 and value[0] % heads == 0
    expect(fits, f"expected sizes of keys and values that {heads} heads share")
    return value


def _attention(query: Any, *both: Any, heads: int, scale: float) -> Expression:
    keys, values = ([reshape(x, (heads, -1)) for x in xs] for xs in _halves(both))
    scores = [sum(reshape(query, (heads, -1)) * key, axis=1, keepdims=True) * scale for key in keys]
    weights = softmax(scores)
    return reshape(sum([weight * value for weight, value in zip(weights, values, strict=True)]), both[-1].shape)


ATTENTION = declare(
    Op(
        "attention",
        _attention_shape,
        variadic=True,
        singles=1,
        equations=Equations(
            ("query[h,d]", "key[e,h,d]", "value[e,h,c]"),
            """
            score[e,h] = scale * sum_d(query * key)
            weight[e,h] = exp(score - stop_gradient(max_e(score))) / sum_e(exp(score - stop_gradient(max_e(score))))
            out[h,c] = sum_e(weight * value)
            """,
            lambda query, key, value, heads, scale: {
                "h": heads,
                "d": query[0] // heads,
                "c": value[0] // heads,
            },
        ),
        unrolled=_attention,
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
    return over_lists(WEIGHTED_SUM, (), (weights, values))


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
    if keys.__class__ is not ExpressionList or values.__class__ is not ExpressionList:
        graph = query.graph if query.__class__ is Expression else None
        alike = values is keys
        keys = listed("attention", keys, graph)
        values = keys if alike else listed("attention", values, keys.graph)
    try:
        graph = query.graph
        specs = query.spec, keys.spec_of_each, values.spec_of_each
        type_id, spec = _known[specs, scale, heads, scale.__class__, heads.__class__]
        if graph.__class__ is Trace or not (keys.graph is graph is values.graph and len(keys) == len(values)):
            return _remembered(query, keys, values, scale, heads)
    except (KeyError, AttributeError, TypeError):
        pass
    else:
        node = graph.n
        graph.n = node + 1
        graph.types.append(type_id)
        graph.args += (1 + 2 * len(keys.ids), query.id)
        graph.args += keys.ids
        graph.args += values.ids
        return Expression(graph, node, spec)
    return _remembered(query, keys, values, scale, heads)


_known: dict[Any, tuple[int, Spec]] = {}


def _remembered(query: Any, keys: ExpressionList, values: ExpressionList, scale: Any, heads: Any) -> Expression:
    """The careful way; the next time nothing is left to check."""
    parts = checked_size("attention: heads", heads)
    attributes = (("heads", parts), ("scale", _scale(query, scale, parts)))
    found = over_lists(ATTENTION, (query,), (keys, values), attributes)
    if query.__class__ is Expression and not isinstance(found.graph, Trace):
        specs = query.spec, keys.spec_of_each, values.spec_of_each
        type = node_type(ATTENTION, attributes, specs)
        _known[specs, scale, heads, scale.__class__, heads.__class__] = type.id, type.out
    return found


def _scale(query: Any, scale: float | bool | None, heads: int) -> float:
    if scale is False:
        return 1.0
    if scale is None or scale is True:
        size = math.prod(getattr(query, "shape", ()))
        return 1.0 / math.sqrt(size / heads)
    return checked_number("attention: scale", scale)
