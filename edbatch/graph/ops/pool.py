"""Pooling: the largest entry of each window, or the mean of its entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.op import Op, composite, declare, expect
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.elementwise import alike, equal, where
from edbatch.graph.ops.indices import first
from edbatch.graph.ops.reduce import over_axes, reduced_shape, samples_over_axes, sum
from edbatch.graph.ops.shape import reshape
from edbatch.graph.ops.windows import Moves, Sizes, padded, padded_moves, padded_shape, window_samples, windows
from edbatch.graph.record import array_input
from edbatch.graph.spec import Shape


def _to_the_first(g: Any, out: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Expression:
    kept = reduced_shape(x.shape, axes, True)
    sizes = [size if axis in axes else 1 for axis, size in enumerate(x.shape)]
    numbers = array_input(current_graph(), np.arange(math.prod(sizes)).reshape(sizes))
    largest = first(alike(x, reshape(out, kept)), axes, True)
    return where(equal(numbers, largest), reshape(g, kept), 0)


FIRST_MAX = declare(
    Op("first_max", reduced_shape, reduction="max", gradient=_to_the_first, chooses=True, samples=samples_over_axes())
)
first_max = over_axes(FIRST_MAX)  # of equal entries, the first gets the gradient


def _shape(shape: Shape, padding: Sizes, **moves: Sizes) -> Shape:
    whole = padded_shape(shape, padding)
    small = all(2 * more <= size for more, size in zip(padding, moves["sizes"], strict=True))
    expect(small, "expected a padding of at most half a window")
    return (shape[0], *Moves(**moves).counts(whole))


def _max_pool(x: Any, padding: Sizes, **moves: Sizes) -> Expression:
    seen = windows(padded(x, padding, -math.inf), Moves(**moves))
    return first_max(seen, tuple(range(len(padding))))


def _avg_pool(x: Any, padding: Sizes, **moves: Sizes) -> Expression:
    seen = windows(padded(x, padding), Moves(**moves))
    return sum(seen, tuple(range(len(padding)))) / math.prod(moves["sizes"])


def _pool(n: int, name: str, body: Callable[..., Expression]) -> Callable[[Any], Callable[..., Expression]]:
    """Declare an op of windows over the last n axes."""
    cases = [(0, 2, 2, 1), (0, 3, 1, 1), (0, 1, 3, 1), (1, 2, 3, 2), (0, 5, 7, 1)]  # padding, size, stride, dilation
    samples = window_samples(*(((2, *(5, 6)[:n]), *((number,) * n for number in case)) for case in cases))
    return recorded(composite(name, _shape, body, samples))


def _moves(name: str, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1) -> Attributes:
    stride = kernel_size if stride is None else stride
    return padded_moves(f"{name}({x.spec!r})", int(name[-2]), kernel_size, stride, padding, dilation)


@_pool(2, "max_pool2d", _max_pool)
def max_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Attributes:
    """The largest entry of each window of an image; PyTorch's `max_pool2d`, of one sample.

    Of several that are equal the first gets the gradient; NaN is larger than all numbers.

    Args:
        x: [channels, height, width].
        kernel_size: of a window: its height and width, or an integer for both; so are the others.
        stride: from one window to the next; None: as far as a window goes.
        padding: on both sides of each axis, entries of -inf, which are in no sample: what gradient goes to one is lost;
            at most half a window.
        dilation: from one entry of a window to the next.

    Returns:
        [channels, height, width]: a number for each window.

    Raises:
        EdBatchError: there is no room for a window, or a number does not fit.

    Example: eb.max_pool2d(eb.input([[[1.0, 2.0, 5.0, 0.0], [3.0, 4.0, 0.0, 0.0]]]), 2) -> [[[4. 5.]]]
    """
    return _moves("max_pool2d", x, kernel_size, stride, padding, dilation)


@_pool(1, "max_pool1d", _max_pool)
def max_pool1d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Attributes:
    """The largest entry of each window of a sequence [channels, length]; otherwise as `max_pool2d`.

    Example: eb.max_pool1d(eb.input([[1.0, 4.0, 2.0]]), 2, stride=1) -> [[4. 4.]]
    """
    return _moves("max_pool1d", x, kernel_size, stride, padding, dilation)


@_pool(2, "avg_pool2d", _avg_pool)
def avg_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Attributes:
    """The mean of each window of an image; PyTorch's `avg_pool2d`, of one sample.

    Zeros of the padding count as entries. Arguments, result and errors are otherwise those of `max_pool2d`.

    Example: eb.avg_pool2d(eb.input([[[1.0, 2.0, 5.0, 0.0], [3.0, 4.0, 0.0, 1.0]]]), 2) -> [[[2.5 1.5]]]
    """
    return _moves("avg_pool2d", x, kernel_size, stride, padding)


@_pool(1, "avg_pool1d", _avg_pool)
def avg_pool1d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Attributes:
    """The mean of each window of a sequence [channels, length]; otherwise as `avg_pool2d`.

    Example: eb.avg_pool1d(eb.input([[1.0, 4.0, 2.0]]), 2, stride=1) -> [[2.5 3. ]]
    """
    return _moves("avg_pool1d", x, kernel_size, stride, padding)
