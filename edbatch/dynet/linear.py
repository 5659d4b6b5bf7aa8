"""Products, inverses, convolutions, pooling, and the parts of an LSTM's step that are functions in DyNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import add, multiply, product, with_axes
from edbatch.dynet.checked import named
from edbatch.dynet.expression import item, node
from edbatch.dynet.inputs import generator
from edbatch.dynet.reduce import sum_elems
from edbatch.dynet.shape import concatenate
from edbatch.graph.expression_array import ExpressionArray

_ALL = slice(None)


def affine_transform(exprs: Sequence[Any]) -> Any:
    """bias + weight · x + ..., of a list [bias, weight, x, weight, x, ...]."""
    bias, *pairs = exprs
    if not pairs:
        return node(bias)
    W, x, *more = pairs
    if bias.spec.shape == W.spec.shape[:1] and len(x.spec.shape) == 1 and not isinstance(bias, ExpressionArray):
        found = eb.affine(W, x, bias)
    else:
        found = add(product(W, x), bias)
    for W, x in zip(more[::2], more[1::2], strict=True):
        found = add(found, product(W, x))
    return found


def _eliminated(x: Any) -> tuple[Any, Any]:
    """Inverse and logarithm of the determinant's absolute value, by Gauss and Jordan; no gradient flows through them.

    Rows stay where they are, and all shapes the same, so that all columns are of the same types: `free` has a one for
    each row that has had no pivot, the largest entry of its column. In the end row `pivots[k]` is that of column k.
    """
    n, given = x.spec.shape[0], eb.stop_gradient(x)
    rows = eb.concatenate([given, eb.add(eb.multiply(given, 0.0), np.eye(n, dtype=np.float32))], 1)
    free: Any = np.ones(n, np.float32)
    pivots, logs = [], []
    for at in range(n):
        column = item(rows, (_ALL, at))
        size = eb.abs(column) if at == 0 else eb.subtract(eb.multiply(eb.add(eb.abs(column), 1.0), free), 1.0)
        chosen = eb.one_hot(eb.argmax(size, 0), n)
        pivot = eb.dot(chosen, column)
        row = eb.divide(eb.matmul(chosen, rows), pivot)
        rows = eb.subtract(rows, eb.multiply(eb.reshape(eb.subtract(column, chosen), (n, 1)), row))
        free = eb.subtract(free, chosen)
        pivots.append(chosen)
        logs.append(eb.log(eb.abs(pivot)))
    return eb.matmul(eb.stack(pivots), item(rows, (_ALL, slice(n, 2 * n)))), eb.sum(logs)


def inverse(x: Any) -> Any:
    """The inverse of a matrix: 2 Y - Y x Y, where Y is what elimination finds, has its value and its gradient."""
    x = node(x)
    found, _ = _eliminated(x)
    return eb.subtract(eb.multiply(found, 2.0), eb.matmul(found, eb.matmul(x, found)))


def logdet(x: Any) -> Any:
    """Logarithm of the determinant's absolute value; its gradient is the inverse's transpose."""
    x = node(x)
    inverted, found = _eliminated(x)
    slope = sum_elems(eb.multiply(eb.transpose(inverted), x))
    return eb.add(found, eb.subtract(slope, eb.stop_gradient(slope)))


def _turned(u: Any, sign: int) -> Any:
    """The matrix of a circular convolution or correlation with a vector."""
    n = u.spec.size
    row, column = np.indices((n, n))
    return eb.reshape(eb.gather(node(u), ((row - column) * sign % n).reshape(-1).tolist(), 0), (n, n))


def filter1d_narrow(x: Any, y: Any) -> Any:
    """Convolution along the columns: filters y [rows, width] or [rows, width, filters] over x [rows, columns]."""
    return eb.conv1d(x, eb.transpose(with_axes(y, 3), (2, 0, 1)))


def _padded(x: Any, size: Sequence[int], stride: Sequence[int], is_valid: bool, value: float) -> Any:
    """An image [rows, columns, channels] as [channels, rows, columns], with TensorFlow's padding if it is not valid."""
    axes, image = x.spec.shape, eb.transpose(with_axes(x, 3), (2, 0, 1))
    if is_valid:
        return image
    widths = []
    for axis in (0, 1):
        out = -(-axes[axis] // stride[axis])
        missing = max(0, (out - 1) * stride[axis] + size[axis] - axes[axis])
        widths.append((missing // 2, missing - missing // 2))
    return eb.pad(image, ((0, 0), *widths), value) if any(map(any, widths)) else image


def conv2d_bias(x: Any, f: Any, b: Any, stride: Sequence[int], is_valid: bool = True) -> Any:
    """Convolution of an image [rows, columns, channels] with f [rows, columns, channels, filters], plus b [filters]."""
    image = _padded(x, f.spec.shape, stride, is_valid, 0.0)
    filters = eb.transpose(f, (3, 2, 0, 1))
    return eb.transpose(eb.conv2d(image, filters, b, tuple(int(step) for step in stride)), (1, 2, 0))


def maxpooling2d(x: Any, ksize: Sequence[int], stride: Sequence[int], is_valid: bool = True) -> Any:
    """Largest entries of the windows of an image [rows, columns, channels]."""
    image = _padded(x, ksize, stride, is_valid, float(np.finfo(np.float32).min))
    steps = tuple(int(step) for step in stride)
    return eb.transpose(eb.max_pool2d(image, tuple(int(size) for size in ksize), steps), (1, 2, 0))


def vanilla_lstm_gates_concat(
    x_t: Sequence[Any], h_tm1: Any, Wx: Any, Wh: Any, b: Any, weightnoise_std: float = 0.0
) -> Any:
    """The gates [i, f, o, candidate] of an LSTM whose forget gate has a bias of 1, of an input in parts."""
    sums = add(add(product(Wx, concatenate(x_t)), product(Wh, h_tm1)), b)
    if weightnoise_std:
        sums = eb.add(sums, generator().normal(0, weightnoise_std, sums.spec.shape))
    i, f, o, g = eb.split(sums, 4)
    return eb.concatenate([eb.sigmoid(i), eb.sigmoid(eb.add(f, 1.0)), eb.sigmoid(o), eb.tanh(g)])


def vanilla_lstm_gates_dropout_concat(
    x_t: Sequence[Any], h_tm1: Any, Wx: Any, Wh: Any, b: Any, dropout_mask_x: Any, dropout_mask_h: Any,
    weightnoise_std: float = 0.0,
) -> Any:  # fmt: skip
    """`vanilla_lstm_gates_concat` of what masks leave of the input and the state."""
    x = multiply(concatenate(x_t), eb.stop_gradient(node(dropout_mask_x)))
    h = multiply(h_tm1, eb.stop_gradient(node(dropout_mask_h)))
    return vanilla_lstm_gates_concat([x], h, Wx, Wh, b, weightnoise_std)


def _memory(c_tm1: Any, gates_t: Any) -> Any:
    i, f, _, g = eb.split(node(gates_t), 4)
    return eb.add(eb.multiply(f, c_tm1), eb.multiply(i, g))


#: By DyNet's name.
TABLE = named(
    affine_transform, inverse, logdet, filter1d_narrow, conv2d_bias, maxpooling2d, vanilla_lstm_gates_concat,
    vanilla_lstm_gates_dropout_concat,
    circ_conv=(lambda u, v: eb.matmul(_turned(u, 1), v), "Circular convolution: Σⱼ u[i - j] v[j]."),
    circ_corr=(lambda u, v: eb.matmul(_turned(u, -1), v), "Circular correlation: Σⱼ u[j - i] v[j]."),
    conv2d=(lambda x, f, stride, is_valid=True: conv2d_bias(x, f, None, stride, is_valid), "Without the bias."),
    vanilla_lstm_c=(_memory, "The next memory: f c + i g."),
    vanilla_lstm_h=(lambda c, gates: eb.multiply(eb.split(node(gates), 4)[2], eb.tanh(c)), "o tanh(c)."),
)  # fmt: skip
