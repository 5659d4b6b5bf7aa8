"""Products of vectors and matrices."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.recording import lift, node, recording, stacked
from edbatch.torch.registry import expect_default, refused, register


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    x, W, b = node(input), lift(weight), lift(bias)
    axes = len(x.spec.shape)
    if axes == 1:
        return eb.matmul(W, x) if b is None else eb.affine(W, x, b)
    if axes == 2 and x.spec.shape[0] == 1 and len(W.spec.shape) == 2:  # [1, d] costs what [d] does
        return eb.unsqueeze(linear(eb.squeeze(x, 0), W, b), 0)
    y = eb.matmul(x, W.T)
    return y if b is None else eb.add(y, b)


@register(F.linear)
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """The same, of rows where samples differ in their number."""
    if isinstance(input, torch.Tensor) and isinstance(weight, torch.Tensor) and input.dtype is not weight.dtype:
        raise EdBatchError(
            f"edbatch.torch: linear of a tensor of {input.dtype}: expected {weight.dtype}, as the weights"
        )
    if isinstance(input, torch.Tensor) and input.ndim == 2 and len(input) > 1 and recording().is_of_sample(input):
        return stacked(linear(eb.array(recording().promoted(input).numpy()), weight, bias))
    return linear(input, weight, bias)


@register(torch.matmul, methods="matmul")
def matmul(input: Any, other: Any) -> Any:
    a, b = lift(input), lift(other)
    if a.shape[:1] == (1,) and len(a.shape) == len(b.shape) == 2 and isinstance(a, eb.Expression):
        return eb.unsqueeze(eb.matmul(eb.squeeze(a, 0), b), 0)
    return eb.matmul(a, b)


def _product(name: str, first: int, second: int, added: str = "") -> None:
    """`matmul` of operands of so many axes, and the function that adds it to something."""

    def handler(input: Any, other: Any) -> Any:
        a, b = lift(input), lift(other)
        if (len(a.shape), len(b.shape)) != (first, second):
            raise refused(f"torch.{name} of {list(a.shape)} and {list(b.shape)}", f"expected {first} and {second} axes")
        return matmul(a, b)

    def adding(input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        y, x = handler(left, right), lift(input)
        return (y if alpha == 1 else y * alpha) + (x if beta == 1 else x * beta)

    register(getattr(torch, name), methods=name)(handler)
    if added:
        register(getattr(torch, added), methods=added)(adding)


_product("mm", 2, 2, "addmm")
_product("mv", 2, 1, "addmv")
_product("bmm", 3, 3, "baddbmm")
_product("dot", 1, 1)
_product("vdot", 1, 1)


@register(torch.inner, methods="inner")
def inner(input: Any, other: Any) -> Any:
    a, b = lift(input), lift(other)
    if not a.shape or len(b.shape) not in (1, 2):
        raise refused(
            f"torch.inner of {list(a.shape)} and {list(b.shape)}", "expected a vector or a matrix; torch.einsum"
        )
    return eb.matmul(a, b.T if len(b.shape) == 2 else b)


#: Whether `nn.TransformerEncoder` may go a way that is faster for several sequences.
register(torch._nested_tensor_from_mask_left_aligned)(lambda *_: False)


@register(F.scaled_dot_product_attention)
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **given: Any,
) -> Any:
    expect_default("enable_gqa", given.pop("enable_gqa", None), False)
    q, k, v = node(query), node(key), node(value)
    scale = given.pop("scale", None) or 1 / math.sqrt(q.spec.shape[-1])
    scores = eb.matmul(q, eb.swapaxes(k, -2, -1)) * scale
    if is_causal:
        expect_default("attn_mask", attn_mask)
        scores = eb.where(torch.ones(tuple(scores.shape[-2:])).tril().numpy(), scores, -math.inf)
    if attn_mask is not None:
        mask = lift(attn_mask)
        scores = eb.where(mask, scores, -math.inf) if attn_mask.dtype is torch.bool else scores + mask
    weights = eb.softmax(scores, -1)
    return eb.matmul(eb.dropout(weights, dropout_p) if dropout_p else weights, v)
