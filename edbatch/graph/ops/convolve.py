"""Convolutions: the entries of all windows as columns, and one product with the weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edbatch.graph.expression import Expression
from edbatch.graph.fast import described
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.ops.matrix import matmul
from edbatch.graph.ops.place import concatenate
from edbatch.graph.ops.shape import reshape, split, transpose
from edbatch.graph.ops.windows import Moves, Sizes, columns, padded, per_axis, windows_gradient
from edbatch.graph.record import record, to_expression
from edbatch.graph.spec import Shape, Spec


def _shape(x: Shape, weight: Shape, *bias: Shape, padding: Sizes, steps: Sizes, gaps: Sizes, groups: int) -> Shape:
    n = len(padding)
    expect(len(x) == n + 1, f"expected [channels, {'height, width' if n == 2 else 'length'}]")
    text = f"expected weights [out, channels / groups, {'height, width' if n == 2 else 'length'}]"
    expect(len(weight) == n + 2 and x[0] == weight[1] * groups and weight[0] % groups == 0, text)
    expect(bias in ((), ((weight[0],),)), f"expected a bias of {weight[0]}")
    whole = (x[0], *(size + 2 * more for size, more in zip(x[1:], padding, strict=True)))
    return (weight[0], *Moves(weight[2:], steps, gaps).counts(whole))


def _correlate_shape(x: Shape, rows: Shape, **moves: Sizes) -> Shape:
    counts = Moves(**moves).counts(x)
    expect(len(x) == len(counts) + 1 and rows[1:] == (x[0] * math.prod(moves["sizes"]),), "expected rows of a window")
    return (rows[0], *counts)


def _correlate(x: Any, rows: Any, **given: Sizes) -> Expression:
    moves = Moves(**given)
    return reshape(matmul(rows, columns(x, moves)), (rows.shape[0], *moves.counts(x.shape)))


def _correlate_gradient(g: Any, out: Any, x: Any, rows: Any, **given: Sizes) -> tuple[Expression, Expression]:
    moves = Moves(**given)
    of_rows = transpose(matmul(columns(x, moves), transpose(reshape(g, (rows.shape[0], -1)))))
    if set(moves.steps) == {1}:
        return _turned(g, x.shape[0], to_expression("correlate", rows), moves), of_rows
    found = reshape(matmul(transpose(rows), reshape(g, (rows.shape[0], -1))), (x.shape[0], *moves.sizes, *g.shape[1:]))
    n = len(moves.sizes)
    order = (*range(1, n + 1), 0, *range(n + 1, found.ndim))
    return windows_gradient(transpose(found, order), None, x, **given), of_rows


def _turned(g: Any, channels: int, rows: Any, moves: Moves) -> Expression:
    """Windows of gradients times the weights in reverse order: that adds up what each entry gets in the product."""
    n = len(moves.sizes)
    weights = transpose(reshape(rows, (-1, channels, *moves.sizes)), (1, 0, *range(2, n + 2)))
    weights = weights[(slice(None), slice(None), *[slice(None, None, -1)] * n)]
    around = padded(g, tuple(span - 1 for span in moves.spans))
    return record(CORRELATE, (around, reshape(weights, (channels, -1))), **moves._asdict())


_MOVES = ("sizes", "steps", "gaps")
# One product of weights, as rows, with the windows of all channels.
CORRELATE = declare(
    Op(
        "correlate",
        _correlate_shape,
        unrolled=_correlate,
        gradient=_correlate_gradient,
        samples=(
            Sample(((2, 3), (3, 4)), dict(zip(_MOVES, ((2,), (1,), (1,)), strict=True))),
            Sample(((1, 3, 5), (2, 6)), dict(zip(_MOVES, ((2, 3), (1, 1), (2, 1)), strict=True))),
            Sample(((2, 3, 3), (1, 2)), dict(zip(_MOVES, ((1, 1), (2, 1), (1, 1)), strict=True))),
        ),
    )
)


def _convolve(x: Any, weight: Any, *bias: Any, padding: Sizes, steps: Sizes, gaps: Sizes, groups: int) -> Expression:
    moves = Moves(weight.shape[2:], steps, gaps)._asdict()
    rows = reshape(weight, (weight.shape[0], -1))
    parts = zip(split(padded(to_expression("convolve", x), padding), groups), split(rows, groups), strict=True)
    out = [record(CORRELATE, pair, **moves) for pair in parts]
    found = out[0] if groups == 1 else concatenate(out)
    for one in bias:
        found = found + reshape(one, (-1, *[1] * len(padding)))
    return found


def _attributes(padding: Sizes, steps: Sizes, gaps: Sizes, groups: int = 1) -> dict[str, Any]:
    return {"padding": padding, "steps": steps, "gaps": gaps, "groups": groups}


CONV1D = composite(
    "conv1d",
    _shape,
    _convolve,
    (
        Sample(((2, 5), (3, 2, 2)), _attributes((0,), (1,), (1,))),
        Sample(((2, 4), (2, 1, 3), (2,)), _attributes((1,), (2,), (1,), 2)),
    ),
)
CONV2D = composite(
    "conv2d",
    _shape,
    _convolve,
    (
        Sample(((2, 3, 4), (3, 2, 2, 2)), _attributes((0, 0), (1, 1), (1, 1))),
        Sample(((1, 3, 3), (2, 1, 3, 3), (2,)), _attributes((1, 1), (1, 1), (1, 1))),
        Sample(((2, 3, 5), (2, 1, 2, 2), (2,)), _attributes((1, 0), (2, 1), (1, 2), 2)),
    ),
)


def _call(op: Op, n: int) -> Callable[[tuple[Any, ...], Any], Expression]:
    def attributes(specs: tuple[Spec, ...], given: tuple[Any, ...]) -> dict[str, Any]:
        names = ("stride", "padding", "dilation", "groups")
        places = (f"{op.name}({', '.join(map(repr, specs))}): {name}" for name in names)
        at, beside, apart, groups = places
        stride, padding, dilation, count = given
        found = per_axis(beside, padding, n, 0), per_axis(at, stride, n), per_axis(apart, dilation, n)
        return _attributes(*found, *per_axis(groups, count, 1))

    return described(op, attributes)


_conv1d, _conv2d = _call(CONV1D, 1), _call(CONV2D, 2)


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Expression:
    """Products of weights with the windows of a sequence; PyTorch's `conv1d`, of one sample.

    Arguments, result and errors are those of `conv2d`, without the height: `x` is [channels, length], the weights are
    [out, channels / groups, length of a window].

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.conv1d(eb.input([[1.0, 2.0, 4.0]]), eb.input([[[1.0, -1.0]]]))
        >>> y.value()
        array([[-1., -2.]], dtype=float32)
    """
    return _conv1d((x, weight) if bias is None else (x, weight, bias), (stride, padding, dilation, groups))


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Expression:
    """Products of weights with the windows of an image; PyTorch's `conv2d`, of one sample.

    Args:
        x: [channels, height, width].
        weight: [out, channels / groups, height, width of a window]; mostly a parameter.
        bias: [out], or None.
        stride: from one window to the next: an integer, or one for each axis; so are the others.
        padding: zeros on both sides of each axis.
        dilation: from one entry of a window to the next.
        groups: in how many groups channels are divided, each with weights of its own.

    Returns:
        [out, height, width]: a number for each window.

    Raises:
        EdBatchError: the shapes do not fit, or there is no room for a window.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters((8, 3, 3, 3))
        >>> with eb.Graph():
        ...     y = eb.conv2d(eb.zeros((3, 28, 28)), W, stride=2, padding=1)
        >>> y.shape
        (8, 14, 14)
    """
    return _conv2d((x, weight) if bias is None else (x, weight, bias), (stride, padding, dilation, groups))
