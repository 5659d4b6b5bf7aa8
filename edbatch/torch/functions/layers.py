"""Functions of layers: look-ups, dropout, normalization, convolutions and pooling."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.index import integers, unbind
from edbatch.torch.recording import lift, node, recording, stacked, written
from edbatch.torch.registry import Unlike, refused, register
from edbatch.torch.unread import Unread


@register(F.embedding)
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    if max_norm is not None or scale_grad_by_freq:
        raise refused("an embedding with max_norm or scale_grad_by_freq", "they mix samples")
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


@register(F.layer_norm, torch.layer_norm)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, enable: bool = True
) -> Any:
    x, shape = node(input), tuple(normalized_shape)
    if len(shape) != 1 or x.spec.shape[-1:] != shape:
        raise Unlike
    gain = eb.ones(shape) if weight is None else lift(weight)
    return eb.layer_norm(x, gain, eb.zeros(shape) if bias is None else lift(bias), eps)


@register(F.rms_norm, torch.rms_norm)
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    x = node(input)
    if x.spec.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise Unlike
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
    raise Unlike


@register(torch.instance_norm)
def instance_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *_: Any) -> Any:
    if training and mean is not None:
        raise refused("instance_norm with track_running_stats in training", "it mixes samples; expected eval()")
    raise Unlike


def _convolution(theirs: Any, ours: Any, axes: int) -> None:
    """Of one sample with so many axes, or of several along a first axis."""

    def handler(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        W, b, x = lift(weight), lift(bias), node(input)
        given = [one[0] if axes == 2 and isinstance(one, tuple | list) else one for one in (stride, padding, dilation)]
        if len(x.spec.shape) == axes:
            return ours(x, W, b, *given, groups)
        return eb.stack([ours(part, W, b, *given, groups) for part in unbind(x)])

    register(theirs)(handler)


_convolution(torch.conv1d, eb.conv1d, 2)
_convolution(torch.conv2d, eb.conv2d, 3)
