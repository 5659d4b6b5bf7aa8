"""Functions of layers: look-ups, dropout, normalization, convolutions and pooling."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.index import integers
from edbatch.torch.functions.shape import at
from edbatch.torch.recording import lift, node, recording, stacked, written
from edbatch.torch.registry import expect_default, refused, register
from edbatch.torch.unread import Unread


@register(F.embedding)
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, *_: Any, **given: Any
) -> Any:
    expect_default("max_norm", max_norm)
    expect_default("scale_grad_by_freq", given.get("scale_grad_by_freq", _[1] if len(_) > 1 else None), False)
    table = lift(weight)
    padding = None if padding_idx is None else padding_idx % table.shape[0]

    def rows(index: Any) -> Any:
        if isinstance(index, list):
            return eb.stack([rows(one) for one in index])
        if index.__class__ is int and index < 0:
            raise IndexError("index out of range in self")
        found = eb.lookup(table, index) if isinstance(table, eb.Parameter) else eb.pick(table, index)
        return eb.stop_gradient(found) if padding is not None and index == padding else found

    if input.__class__ is torch.Tensor and input.dtype is torch.int64 and not input.ndim:  # the usual, and fast
        recording().expect_constant(input)
        return rows(input.item())
    if isinstance(input, torch.Tensor | Unread):
        numbers = integers(input)
        if not numbers.size:
            return torch.zeros(*numbers.shape, table.shape[1], dtype=weight.dtype)
        if numbers.ndim != 1:
            return rows(numbers.tolist())
        if padding is None and isinstance(table, eb.Parameter):
            return stacked(eb.lookup(table, numbers))
        return stacked([rows(number) for number in numbers.tolist()])
    if padding is not None:
        raise refused("an embedding with padding_idx in a cell", "do the look-up outside of it")
    return rows(input)  # an integer argument of a cell


@register(F.dropout, torch.dropout)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: Any = None) -> Any:
    x = node(input)
    if not (training if train is None else train) or not p:
        return x
    result = x * 0.0 if p == 1 else eb.dropout(x, p)
    return written(x, result, "dropout") if inplace else result


@register(F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d, F.dropout2d, F.dropout3d)
def _other_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    if training:
        raise refused("this dropout in training", "expected nn.Dropout")
    return node(input)


def _before(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes before those of a shape that is normalized."""
    before = tuple(x.spec.shape[: len(x.spec.shape) - len(shape)])
    if (*before, *shape) != tuple(x.spec.shape):
        raise RuntimeError(f"Given normalized_shape={list(shape)}, got input of size {list(x.shape)}")
    return before


@register(F.layer_norm, torch.layer_norm)
def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    x, shape = node(input), tuple(normalized_shape)
    before = _before(x, shape)
    size = math.prod(shape)
    gain, shift = (lift(one) for one in (weight, bias))
    if len(shape) > 1:
        gain, shift = (None if one is None else eb.reshape(node(one), size) for one in (gain, shift))
        x = eb.reshape(x, (*before, size))
    y = eb.layer_norm(x, eb.ones(size) if gain is None else gain, eb.zeros(size) if shift is None else shift, eps)
    return eb.reshape(y, (*before, *shape)) if len(shape) > 1 else y


@register(F.rms_norm, torch.rms_norm)
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    x = node(input)
    _before(x, tuple(normalized_shape))
    axes = tuple(range(-len(normalized_shape), 0))
    least = float(np.finfo(x.spec.dtype).eps) if eps is None else eps
    y = x * eb.power(eb.mean(eb.square(x), axes, True) + least, -0.5)
    return y if weight is None else y * lift(weight)


@register(F.batch_norm)
def batch_norm(
    input: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False, *_: Any, **given: Any
) -> Any:
    if training or mean is None:
        raise refused("batch_norm in training", "it mixes samples; expected LayerNorm, or the module in eval()")
    scale = (var + given.get("eps", _[1] if len(_) > 1 else 1e-5)).rsqrt()
    return _by_channel(_by_channel(node(input), scale, -mean * scale), weight, bias)


def _by_channel(x: Any, weight: Any, bias: Any) -> Any:
    """What is weighted, and added to, each of the channels along the second axis."""
    rest = (1,) * (len(x.spec.shape) - 2)
    weight, bias = (
        eb.reshape(node(one), (-1, *rest)) if rest and one is not None else lift(one) for one in (weight, bias)
    )
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@register(torch.group_norm)
def group_norm(input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    x = node(input)
    if x.spec.shape[1] % groups:
        raise refused(f"group_norm of {list(x.shape)}", f"expected channels that {groups} divides")
    y = eb.reshape(x, (x.spec.shape[0], groups, -1))
    y = eb.reshape(layer_norm(y, y.spec.shape[2:], eps=eps), x.spec.shape)
    return _by_channel(y, weight, bias)


@register(torch.instance_norm)
def instance_norm(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, *_: Any
) -> Any:
    if not training:
        return batch_norm(input, mean, var, weight, bias, eps=eps)
    if mean is not None:
        raise refused("instance_norm with track_running_stats in training", "it mixes samples; expected eval()")
    return group_norm(input, input.shape[1], weight, bias, eps)


# --- of windows


def _each(function: Any, x: Any, axes: int) -> Any:
    """A function of one sample with so many axes, for one, or for several along a first axis."""
    if len(x.spec.shape) == axes:
        return function(x)
    if len(x.spec.shape) != axes + 1:
        raise refused(f"shape {list(x.shape)}", f"expected {axes} axes, or {axes + 1}")
    return eb.stack([function(at(x, 0, i)) for i in range(x.spec.shape[0])])


def _numbers(given: Any, axes: int) -> Any:
    """A number for each axis of a window."""
    return given[0] if axes == 2 and isinstance(given, tuple | list) else given


def _convolution(theirs: Any, ours: Any, axes: int) -> None:
    def handler(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        W, b = lift(weight), lift(bias)
        numbers = [_numbers(one, axes) for one in (stride, padding, dilation)]
        return _each(lambda x: ours(x, W, b, *numbers, groups), node(input), axes)

    register(theirs)(handler)


def _pooling(ours: Any, axes: int, more: str, *functions: Any, **unchanged: Any) -> None:
    """Of windows of some size, stride and padding; then come, by place, one more and what has one value only."""
    names = [name for name in ("kernel_size", "stride", "padding", more, *unchanged) if name]

    def handler(input: Any, *args: Any, **given: Any) -> Any:
        given |= zip(names, args, strict=False)
        for name, value in unchanged.items():
            expect_default(name, given.pop(name, None), value)
        given = {name: _numbers(one, axes) for name, one in given.items() if one not in (None, ())}
        return _each(lambda x: ours(x, **given), node(input), axes)

    register(*functions)(handler)


_convolution(torch.conv1d, eb.conv1d, 2)
_convolution(torch.conv2d, eb.conv2d, 3)
_pooling(eb.max_pool1d, 2, "dilation", F.max_pool1d, torch.max_pool1d, ceil_mode=False, return_indices=False)
_pooling(eb.max_pool2d, 3, "dilation", F.max_pool2d, torch.max_pool2d, ceil_mode=False, return_indices=False)
_pooling(eb.avg_pool1d, 2, "", F.avg_pool1d, ceil_mode=False, count_include_pad=True)
_pooling(eb.avg_pool2d, 3, "", F.avg_pool2d, ceil_mode=False, count_include_pad=True, divisor_override=None)


def _adaptive(axes: int, mean: Any, largest: Any) -> None:
    """Of windows that are as large as sizes of the results ask for."""

    def of_means(input: Any, output_size: Any) -> Any:
        x = node(input)
        sizes = output_size if isinstance(output_size, tuple | list) else (output_size,) * axes
        if len(x.spec.shape) - axes not in (1, 2) or len(sizes) != axes or min(size or 1 for size in sizes) < 1:
            raise refused(f"adaptive pooling of {list(x.shape)} to {output_size}")
        for axis, size in enumerate(sizes, len(x.spec.shape) - axes):
            n = x.spec.shape[axis]
            parts = [at(x, axis, slice(i * n // size, -(-(i + 1) * n // size))) for i in range(size or 0)]
            x = eb.concatenate([eb.mean(part, axis, True) for part in parts], axis) if parts else x
        return x

    def of_all(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        expect_default("output_size", output_size, 1, (1,) * axes)
        expect_default("return_indices", return_indices, False)
        pool = eb.max_pool1d if axes == 1 else eb.max_pool2d
        return _each(lambda x: pool(x, _numbers(x.spec.shape[1:], axes + 1)), node(input), axes + 1)

    register(mean)(of_means)
    if axes < 3:
        register(largest)(of_all)


_adaptive(1, F.adaptive_avg_pool1d, F.adaptive_max_pool1d)
_adaptive(2, F.adaptive_avg_pool2d, F.adaptive_max_pool2d)
_adaptive(3, F.adaptive_avg_pool3d, None)
