"""Functions over axes."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.shape import at, axis_of
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import expect_default, refused, register
from edbatch.torch.unread import Unread


def _axes_of(x: Any, dim: Any) -> Any:
    """Axes as EdBatch takes them: None is all."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return None
    return tuple(axis_of(x, one) for one in dim) if isinstance(dim, tuple | list) else axis_of(x, dim)


def _reduced(function: Callable[..., Any], x: Any, dim: Any, keepdim: bool) -> Any:
    axes = _axes_of(x, dim)
    # Without axes `dim` may be 0, and the result is another tensor.
    return function(x, axes, keepdim) if x.spec.shape else copy.copy(x)


def _reduction(function: Callable[..., Any], *functions: Any, methods: str) -> None:
    def handler(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        x = node(input)
        expect_default("dtype", dtype, x.dtype)
        return _reduced(function, x, dim, keepdim)

    register(*functions, methods=methods)(handler)


_reduction(eb.sum, torch.sum, methods="sum")
_reduction(eb.mean, torch.mean, methods="mean")
_reduction(eb.max, torch.amax, methods="amax")
_reduction(eb.min, torch.amin, methods="amin")
_reduction(eb.logsumexp, torch.logsumexp, torch.special.logsumexp, methods="logsumexp")


class _Extremes(NamedTuple):
    values: Any
    indices: Any


def _extreme(name: str, over: Any, number: Any, of_two: Any) -> None:
    def handler(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if other is not None or isinstance(dim, torch.Tensor | eb.Expression):
            return of_two(lift(input), lift(dim if other is None else other))
        x = node(input)
        if dim is None:
            return _reduced(over, x, None, False)
        axis = axis_of(x, dim)
        indices = number(x, axis, keepdims=True)
        values = eb.gather(x, indices, axis)  # where several are equal, the gradient goes to the one that is named
        if not keepdim:
            indices, values = eb.squeeze(indices, axis), eb.squeeze(values, axis)
        return _Extremes(values, Unread(indices, torch.int64))

    def numbered(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        x = node(input)
        return Unread(number(x, None if dim is None else axis_of(x, dim), keepdims=keepdim), torch.int64)

    register(getattr(torch, name), methods=name)(handler)
    register(getattr(torch, f"arg{name}"), methods=f"arg{name}")(numbered)


_extreme("max", eb.max, eb.argmax, eb.maximum)
_extreme("min", eb.min, eb.argmin, eb.minimum)


def _deviation(name: str) -> None:
    def handler(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **given: Any) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        x, less = node(input), given.get("correction")
        less = float(unbiased is not False) if less is None else less
        axes = _axes_of(x, dim)
        over = range(len(x.spec.shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
        count = math.prod(x.spec.shape[axis] for axis in over) if x.spec.shape else 1
        if count - less <= 0:
            raise refused(f"a deviation of {count} entries", "it would be NaN; expected more, or correction=0")
        if name == "std":
            return eb.std(x, axes, keepdim) * math.sqrt(count / (count - less))
        return eb.sum(eb.square(x - eb.mean(x, axes, True)), axes, keepdim) / (count - less)

    register(getattr(torch, name), methods=name)(handler)


_deviation("std")
_deviation("var")


def _norm(x: Any, p: Any, dim: Any, keepdim: bool) -> Any:
    if p in (None, 2, "fro"):
        return _reduced(eb.norm, x if x.spec.shape else eb.abs(x), dim, keepdim)
    if p not in (1, math.inf):
        raise refused(f"norm with p={p!r}", "expected 1, 2 or inf")
    return _reduced(eb.sum if p == 1 else eb.max, eb.abs(x), dim, keepdim)


@register(torch.norm, methods="norm")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    expect_default("dtype", dtype)
    return _norm(node(input), p, dim, keepdim)


@register(torch.linalg.vector_norm)
def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    expect_default("dtype", dtype)
    return _norm(node(x), ord, dim, keepdim)


@register(torch.pairwise_distance)
def distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return _norm(node(x1) - lift(x2) + eps, p, -1, keepdim)


@register(torch.cosine_similarity)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    a, b = node(x1), node(x2)
    longest = max(len(a.spec.shape), len(b.spec.shape))
    axis = axis_of(a if len(a.spec.shape) == longest else b, dim) - longest
    # Each is divided by its own length, at least `eps`, which PyTorch's gradient does not see.
    lengths = [eb.norm(x, axis, True) for x in (a, b)]
    lengths = [x + eb.stop_gradient(eb.clip(x, eps, None) - x) for x in lengths]
    return eb.sum(a / lengths[0] * (b / lengths[1]), axis)


# --- along an axis


@register(torch.prod, methods="prod")
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = node(input)
    expect_default("dtype", dtype, x.dtype)
    if dim is None:
        return prod(eb.reshape(x, (-1,)), 0)
    axis, shape = axis_of(x, dim), x.spec.shape
    while (n := x.spec.shape[axis] if shape else 1) > 1:  # pair by pair
        pairs = at(x, axis, slice(n // 2)) * at(x, axis, slice(n // 2, n // 2 * 2))
        x = eb.concatenate([pairs, at(x, axis, slice(n - 1, n))], axis) if n % 2 else pairs
    return copy.copy(x) if keepdim or not shape else eb.squeeze(x, axis)


@register(torch.cumprod, methods="cumprod")
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    x, far = node(input), 1
    expect_default("dtype", dtype, x.dtype)
    axis = axis_of(x, dim)
    while x.spec.shape and far < x.spec.shape[axis]:  # each entry is then of twice as many before it
        before = at(x, axis, slice(-far))
        x, far = x * eb.pad(before, [(far * (one == axis), 0) for one in range(len(x.spec.shape))], 1.0), far * 2
    return copy.copy(x)


def _along(function: Callable[..., Any], *functions: Any, methods: str = "") -> None:
    def handler(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        expect_default("dtype", dtype)
        if dim is None:
            raise refused("softmax without dim", "expected dim=")
        x = node(input)
        return function(x, axis_of(x, dim))

    register(*functions, methods=methods)(handler)


_along(eb.softmax, torch.softmax, F.softmax, torch.special.softmax, methods="softmax")
_along(eb.log_softmax, torch.log_softmax, F.log_softmax, torch.special.log_softmax, methods="log_softmax")
_along(eb.cumsum, torch.cumsum, methods="cumsum")
