"""Products, contractions, inverses, convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import add, product
from edbatch.dynet.elimination import eliminated
from edbatch.dynet.numeric import node
from edbatch.dynet.reduce import sum_elems
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray


def affine_transform(exprs: Sequence[Any]) -> Any:
    """bias + weight · x + ..., of a list [bias, weight, x, weight, x, ...]."""
    if not len(exprs):
        raise AssertionError("List input to affine_transform must not be empty.")
    bias, *pairs = exprs
    if not pairs:
        return node(bias)
    if len(pairs) % 2:
        raise EdBatchError(f"affine_transform: expected a bias and pairs of a weight and x, got {len(exprs)} of them")
    first, x = pairs[0], pairs[1]
    if bias.spec.shape == first.spec.shape[:1] and len(x.spec.shape) == 1 and not isinstance(bias, ExpressionArray):
        found = eb.affine(first, x, bias)
    else:
        found = add(product(first, x), bias)
    for at in range(2, len(pairs), 2):
        found = add(found, product(pairs[at], pairs[at + 1]))
    return found


def contract3d_1d(x: Any, y: Any) -> Any:
    """Σₖ x[i, j, k] y[k]."""
    if len(x.spec.shape) != 3:
        raise EdBatchError(f"Bad input dimensions in InnerProduct3D_1D: [{x.spec.shape} {y.spec.shape}]")
    rows, columns, depth = x.spec.shape
    return eb.reshape(product(eb.reshape(x, (rows * columns, depth)), y), (rows, columns))


def contract3d_1d_bias(x: Any, y: Any, b: Any) -> Any:
    """`contract3d_1d` plus a bias."""
    return add(contract3d_1d(x, y), b)


def contract3d_1d_1d(x: Any, y: Any, z: Any) -> Any:
    """Σⱼₖ x[i, j, k] y[k] z[j]."""
    return product(contract3d_1d(x, y), z)


def contract3d_1d_1d_bias(x: Any, y: Any, z: Any, b: Any) -> Any:
    """`contract3d_1d_1d` plus a bias."""
    return add(contract3d_1d_1d(x, y, z), b)


def inverse(x: Any) -> Any:
    """The inverse of a matrix: 2 Y - Y x Y, where Y is what elimination finds, has its value and its gradient."""
    x = node(x)
    found = eliminated("inverse", x).inverse
    return eb.subtract(eb.multiply(found, 2.0), eb.matmul(found, eb.matmul(x, found)))


def logdet(x: Any) -> Any:
    """Logarithm of the determinant's absolute value; its gradient is the inverse's transpose."""
    x = node(x)
    found = eliminated("logdet", x)
    slope = sum_elems(eb.multiply(eb.transpose(found.inverse), x))
    return eb.add(found.logdet, eb.subtract(slope, eb.stop_gradient(slope)))


def circ_conv(u: Any, v: Any) -> Any:
    """Circular convolution: Σⱼ u[i - j] v[j]."""
    return eb.matmul(_turned(u, 1), v)


def circ_corr(u: Any, v: Any) -> Any:
    """Circular correlation: Σⱼ u[j - i] v[j]."""
    return eb.matmul(_turned(u, -1), v)


def _turned(u: Any, sign: int) -> Any:
    """The matrix of a circular convolution or correlation with a vector."""
    n = u.spec.size
    row, column = np.indices((n, n))
    return eb.reshape(eb.gather(node(u), ((row - column) * sign % n).reshape(-1).tolist(), 0), (n, n))


def filter1d_narrow(x: Any, y: Any) -> Any:
    """Convolution along the columns: filters y [rows, width] or [rows, width, filters] over x [rows, columns]."""
    if len(x.spec.shape) != 2 or len(y.spec.shape) not in (2, 3):
        raise EdBatchError(f"Bad input dimensions in Filter1DNarrow: {x.spec.shape} {y.spec.shape}")
    filters = eb.reshape(y, (*y.spec.shape, 1)) if len(y.spec.shape) == 2 else y
    return eb.conv1d(x, eb.transpose(filters, (2, 0, 1)))


def _padded(x: Any, size: Sequence[int], stride: Sequence[int], is_valid: bool, value: float) -> Any:
    """An image [rows, columns, channels] as [channels, rows, columns], with TensorFlow's padding if it is not valid."""
    axes = x.spec.shape
    image = eb.transpose(eb.reshape(x, (*axes, 1)) if len(axes) == 2 else x, (2, 0, 1))
    if is_valid:
        return image
    widths = []
    for axis in (0, 1):
        out = -(-axes[axis] // stride[axis])
        missing = max(0, (out - 1) * stride[axis] + size[axis] - axes[axis])
        widths.append((missing // 2, missing - missing // 2))
    return eb.pad(image, ((0, 0), *widths), value) if any(map(any, widths)) else image


def conv2d(x: Any, f: Any, stride: Sequence[int], is_valid: bool = True) -> Any:
    """Convolution of an image [rows, columns, channels] with f [rows, columns, channels, filters]."""
    return conv2d_bias(x, f, None, stride, is_valid)


def conv2d_bias(x: Any, f: Any, b: Any, stride: Sequence[int], is_valid: bool = True) -> Any:
    """`conv2d` plus a number for each filter."""
    image = _padded(x, f.spec.shape, stride, is_valid, 0.0)
    filters = eb.transpose(f, (3, 2, 0, 1))
    return eb.transpose(eb.conv2d(image, filters, b, tuple(int(step) for step in stride)), (1, 2, 0))


def maxpooling2d(x: Any, ksize: Sequence[int], stride: Sequence[int], is_valid: bool = True) -> Any:
    """Largest entries of the windows of an image [rows, columns, channels]."""
    image = _padded(x, ksize, stride, is_valid, float(np.finfo(np.float32).min))
    steps = tuple(int(step) for step in stride)
    return eb.transpose(eb.max_pool2d(image, tuple(int(size) for size in ksize), steps), (1, 2, 0))
