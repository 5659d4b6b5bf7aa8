"""Convolutions: the entries of all windows as columns, and one product with the weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.matrix import MATMUL_STACK, matmul
from edbatch.graph.ops.shape import reshape, transpose
from edbatch.graph.ops.windows import AXES, Moves, Sizes, columns, pad, padded, padded_shape, per_axis, windows_gradient
from edbatch.graph.record import record, to_expression
from edbatch.graph.spec import Shape


def _shape(x: Shape, weight: Shape, *bias: Shape, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int) -> Shape:
    whole, n = padded_shape(x, padding), len(padding)
    text = f"expected weights [out, channels / groups, {AXES[n]}]"
    expect(len(weight) == n + 2 and x[0] == weight[1] * groups and weight[0] % groups == 0, text)
    expect(bias in ((), ((weight[0],),)), f"expected a bias of {weight[0]}")
    return (weight[0], *Moves(weight[2:], stride, dilation).counts(whole))


def _correlate_shape(x: Shape, rows: Shape, groups: int, **moves: Sizes) -> Shape:
    counts = Moves(**moves).counts(x)
    entries = x[0] // groups * math.prod(moves["sizes"])
    expect(len(x) == len(counts) + 1 and rows[1:] == (entries,), "expected rows of a window")
    return (rows[0], *counts)


def _product(a: Any, b: Any, groups: int) -> Expression:
    """[groups * m, k] times [groups * k, n]: the rows of each group times those of the other's, as one stack."""
    if groups == 1:
        return matmul(a, b)
    left, right = reshape(a, (groups, -1, a.shape[1])), reshape(b, (groups, a.shape[1], -1))
    return reshape(record(MATMUL_STACK, (left, right)), (a.shape[0], -1))


def _turned(a: Any, groups: int) -> Expression:
    """From [groups * m, k] to [groups * k, m]."""
    if groups == 1:
        return transpose(a)
    return reshape(transpose(reshape(a, (groups, -1, a.shape[1])), (0, 2, 1)), (groups * a.shape[1], -1))


def _correlate(x: Any, rows: Any, groups: int, **given: Sizes) -> Expression:
    moves = Moves(**given)
    return reshape(_product(rows, columns(x, moves), groups), (rows.shape[0], *moves.counts(x.shape)))


def _correlate_gradient(g: Any, out: Any, x: Any, rows: Any, groups: int, **given: Sizes) -> tuple[Expression, Any]:
    moves = Moves(**given)
    of_out = reshape(g, (rows.shape[0], -1))
    of_rows = _turned(_product(columns(x, moves), _turned(of_out, groups), groups), groups)
    if set(moves.stride) == {1}:
        return _of_entries(g, x.shape[0], to_expression("correlate", rows), groups, moves), of_rows
    found = reshape(_product(_turned(rows, groups), of_out, groups), (x.shape[0], *moves.sizes, *g.shape[1:]))
    n = len(moves.sizes)
    order = (*range(1, n + 1), 0, *range(n + 1, found.ndim))
    return windows_gradient(transpose(found, order), None, x, **given), of_rows


def _of_entries(g: Any, channels: int, rows: Any, groups: int, moves: Moves) -> Expression:
    """Windows of gradients times the weights in reverse order: that adds up what each entry gets in the product."""
    n = len(moves.sizes)
    weights = reshape(rows, (groups, -1, channels // groups, *moves.sizes))
    weights = transpose(weights, (0, 2, 1, *range(3, n + 3)))
    weights = weights[(..., *[slice(None, None, -1)] * n)]
    around = padded(g, tuple(span - 1 for span in moves.spans))
    return record(CORRELATE, (around, reshape(weights, (channels, -1))), groups=groups, **moves._asdict())


def _windows(sizes: Sizes, stride: Sizes, dilation: Sizes, groups: int = 1) -> dict[str, Any]:
    return {**Moves(sizes, stride, dilation)._asdict(), "groups": groups}


# The products of weights, as rows, with the windows of all channels of their group.
CORRELATE = declare(
    Op(
        "correlate",
        _correlate_shape,
        unrolled=_correlate,
        gradient=_correlate_gradient,
        samples=(
            Sample(((2, 3), (3, 4)), _windows((2,), (1,), (1,))),
            Sample(((1, 3, 5), (2, 6)), _windows((2, 3), (1, 1), (2, 1))),
            Sample(((2, 3, 3), (1, 2)), _windows((1, 1), (2, 1), (1, 1))),
            Sample(((4, 3), (6, 4)), _windows((2,), (1,), (1,), 2)),
            Sample(((3, 3, 4), (3, 2)), _windows((1, 2), (1, 2), (1, 1), 3)),
        ),
    )
)


def _convolve(
    x: Any, weight: Any, *bias: Any, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int
) -> Expression:
    operands = padded(to_expression("convolve", x), padding), reshape(weight, (weight.shape[0], -1))
    found = record(CORRELATE, operands, **_windows(weight.shape[2:], stride, dilation, groups))
    for one in bias:
        found = found + reshape(one, (-1, *[1] * len(padding)))
    return found


def _attributes(padding: Sizes, stride: Sizes, dilation: Sizes, groups: int = 1) -> dict[str, Any]:
    return {"padding": padding, "stride": stride, "dilation": dilation, "groups": groups}


_SAMPLES = (
    (
        Sample(((2, 5), (3, 2, 2)), _attributes((0,), (1,), (1,))),
        Sample(((2, 4), (2, 1, 3), (2,)), _attributes((1,), (2,), (1,), 2)),
    ),
    (
        Sample(((2, 3, 4), (3, 2, 2, 2)), _attributes((0, 0), (1, 1), (1, 1))),
        Sample(((1, 3, 3), (2, 1, 3, 3), (2,)), _attributes((1, 1), (1, 1), (1, 1))),
        Sample(((2, 3, 5), (2, 1, 2, 2), (2,)), _attributes((1, 0), (2, 1), (1, 2), 2)),
    ),
)


def _callers(n: int) -> tuple[Callable[..., Expression], Callable[..., Expression]]:
    """Declare the op of windows over n axes; its callers without and with a bias."""
    op = composite(f"conv{n}d", _shape, _convolve, _SAMPLES[n - 1])

    def attributes(operands: tuple[Any, ...], stride: Any, padding: Any, dilation: Any, groups: Any) -> Attributes:
        place = f"{op.name}({', '.join(repr(x.spec) for x in operands)})"
        return _attributes(
            per_axis(f"{place}: padding", padding, n, 0),
            per_axis(f"{place}: stride", stride, n),
            per_axis(f"{place}: dilation", dilation, n),
            *per_axis(f"{place}: groups", groups, 1),
        )

    return (
        recorded(op, 2)(lambda x, w, stride, padding, gaps, groups: attributes((x, w), stride, padding, gaps, groups)),
        recorded(op, 3)(lambda x, w, b, stride, padding, gaps, n: attributes((x, w, b), stride, padding, gaps, n)),
    )


_CALLERS = [_callers(n) for n in (1, 2)]


def _convolution(n: int, x: Any, weight: Any, bias: Any, *given: Any) -> Expression:
    operands = (x, weight) if bias is None else (x, weight, bias)
    stride, padding, dilation, groups = given
    if isinstance(padding, str) and padding in ("same", "valid"):
        if padding == "same":
            operands = (_as_many_windows(f"conv{n}d", x, weight, stride, dilation), *operands[1:])
        padding = 0
    return _CALLERS[n - 1][len(operands) - 2](*operands, stride, padding, dilation, groups)


def _as_many_windows(name: str, x: Any, weight: Any, stride: Any, dilation: Any) -> Any:
    """An operand with zeros around it, so that it has as many windows as it had entries."""
    x = to_expression(name, x)
    sizes = tuple(weight.shape if hasattr(weight, "shape") else np.shape(weight))[2:]
    n = len(sizes)
    if x.ndim != n + 1:  # which is refused with all else that is
        return x
    if set(per_axis(f"{name}: stride", stride, n)) != {1}:
        raise EdBatchError(f'{name}: expected a stride of 1 for padding="same", got {shown(stride)}')
    spans = Moves(sizes, (1,) * n, per_axis(f"{name}: dilation", dilation, n)).spans
    return pad(x, ((0, 0), *(((span - 1) // 2, span // 2) for span in spans)))


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Expression:
    """Products of weights with the windows of a sequence; PyTorch's `conv1d`, of one sample.

    Arguments, result and errors are those of `conv2d`, without the height: `x` is [channels, length], the weights are
    [out, channels / groups, length of a window].

    Example: eb.conv1d(eb.input([[1.0, 2.0, 4.0]]), eb.input([[[1.0, -1.0]]])) -> [[-1. -2.]]
    """
    return _convolution(1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Expression:
    """Products of weights with the windows of an image; PyTorch's `conv2d`, of one sample.

    Args:
        x: [channels, height, width].
        weight: [out, channels / groups, height, width of a window]; mostly a parameter.
        bias: [out], or None.
        stride: from one window to the next: an integer, or one for each axis; so are the others.
        padding: zeros on both sides of each axis; or "same", for as many windows as there are entries (with an odd
            number of zeros, the one more lies behind), or "valid", for none.
        dilation: from one entry of a window to the next.
        groups: in how many groups channels are divided, each with weights of its own.

    Returns:
        [out, height, width]: a number for each window.

    Raises:
        EdBatchError: the shapes do not fit, there is no room for a window, or windows that are to be as many as entries
            have another stride than 1.

    Example: eb.conv2d(eb.ones((1, 3, 3)), eb.ones((1, 1, 2, 2)), stride=2, padding=1) -> [[[1. 2.] [2. 4.]]]
    """
    return _convolution(2, x, weight, bias, stride, padding, dilation, groups)
