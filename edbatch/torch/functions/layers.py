"""What layers call: look-ups, dropout, normalization, convolutions."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.shape import integers
from edbatch.torch.recording import lift, node, written
from edbatch.torch.registry import expect_default, refused, register


@register(F.embedding)
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    expect_default("max_norm", max_norm)
    expect_default("scale_grad_by_freq", scale_grad_by_freq, False)
    table = lift(weight)
    padding = None if padding_idx is None else padding_idx % table.shape[0]

    def row(index: Any) -> Any:
        found = eb.lookup(table, index) if isinstance(table, eb.Parameter) else eb.pick(table, index)
        return eb.stop_gradient(found) if padding is not None and index == padding else found

    def rows(indices: Any) -> Any:
        return row(indices) if isinstance(indices, int) else eb.stack([rows(one) for one in indices])

    if isinstance(input, torch.Tensor) or hasattr(input, "unread"):
        return rows(integers(input).tolist())
    if padding is not None:
        raise refused("an embedding with padding_idx in a cell", "do the look-up outside of it")
    return row(input)  # an integer argument of a cell


@register(F.dropout, torch.dropout)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: Any = None) -> Any:
    x = node(input)
    if not (training if train is None else train) or not p:
        return x
    result = x * 0.0 if p == 1 else eb.dropout(x, p)
    return written(input, result, "dropout") if inplace else result


@register(F.layer_norm, torch.layer_norm)
def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    x = node(input)
    shape = tuple(normalized_shape)
    if tuple(x.spec.shape[len(x.shape) - len(shape) :]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, got input of size {list(x.shape)}")
    size = math.prod(shape)
    flat = eb.reshape(x, (*x.spec.shape[: len(x.shape) - len(shape)], size))
    gain, shift = (lift(one) for one in (weight, bias))
    if len(shape) > 1:
        gain, shift = (None if one is None else eb.reshape(node(one), size) for one in (gain, shift))
    y = eb.layer_norm(flat, eb.ones(size) if gain is None else gain, eb.zeros(size) if shift is None else shift, eps)
    return eb.reshape(y, x.spec.shape) if len(shape) > 1 else y


@register(F.rms_norm, torch.rms_norm)
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    x = node(input)
    axes = tuple(range(-len(normalized_shape), 0))
    least = float(np.finfo(x.spec.dtype).eps) if eps is None else eps
    y = x * eb.power(eb.mean(eb.square(x), axes, True) + least, -0.5)
    return y if weight is None else y * lift(weight)


@register(F.batch_norm)
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    if training or running_mean is None:
        raise refused("batch_norm in training", "it mixes samples; expected LayerNorm, or the module in eval()")
    x = node(input)
    rest = (1,) * (len(x.shape) - 2)

    def placed(one: Any) -> Any:
        return eb.reshape(node(one), (-1, *rest)) if rest else lift(one)

    y = (x - placed(running_mean)) * placed((running_var + eps).rsqrt())
    y = y if weight is None else y * placed(weight)
    return y if bias is None else y + placed(bias)


def each(function: Any, x: Any, axes: int) -> Any:
    """A function of one sample with so many axes, for one, or for several along a first axis."""
    if len(x.shape) == axes:
        return function(x)
    if len(x.shape) != axes + 1:
        raise refused(f"shape {list(x.shape)}", f"expected {axes} axes, or {axes + 1}")
    count = x.shape[0]
    found = [function(eb.squeeze(x, 0) if count == 1 else eb.Expression.__getitem__(x, i)) for i in range(count)]
    return eb.unsqueeze(found[0], 0) if count == 1 else eb.stack(found)


def _convolution(name: str, ours: Any, axes: int) -> None:
    def handler(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        W, b = lift(weight), lift(bias)
        numbers = [one if isinstance(one, str) else _numbers(one, axes - 1) for one in (stride, padding, dilation)]
        return each(lambda x: ours(x, W, b, *numbers, groups), node(input), axes)

    register(getattr(torch, name))(handler)


def _numbers(given: Any, count: int) -> Any:
    """One for each axis."""
    numbers = list(given) if isinstance(given, tuple | list) else [given]
    numbers = numbers * count if len(numbers) == 1 else numbers
    return numbers[0] if count == 1 else tuple(numbers)


_convolution("conv1d", eb.conv1d, 2)
_convolution("conv2d", eb.conv2d, 3)


@register(F.multi_head_attention_forward)
def multi_head_attention_forward(*_: Any, **__: Any) -> Any:
    raise refused("MultiheadAttention", "write it with F.scaled_dot_product_attention")


@register(F.scaled_dot_product_attention)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    expect_default("enable_gqa", enable_gqa, False)
    q, k, v = node(query), node(key), node(value)
    scores = eb.matmul(q, eb.swapaxes(k, -2, -1)) * (1 / math.sqrt(q.spec.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(tuple(scores.shape[-2:]), dtype=torch.bool).tril()
    if attn_mask is not None:
        mask = lift(attn_mask)
        scores = eb.where(mask, scores, -math.inf) if attn_mask.dtype is torch.bool else scores + mask
    return eb.matmul(dropout(eb.softmax(scores, -1), dropout_p), v)


register(F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d, F.dropout2d, F.dropout3d)(
    lambda input, p=0.5, training=False, inplace=False: copy.copy(node(input)) if not training else _other_dropout()
)


def _other_dropout() -> Any:
    raise refused("this dropout in training", "expected nn.Dropout")
