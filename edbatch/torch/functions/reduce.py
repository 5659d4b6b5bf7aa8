"""Functions over axes."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions.shape import axis_of
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import Unlike, expect_default, register
from edbatch.torch.unread import Unread


def _axes_of(x: Any, dim: Any) -> Any:
    """Axes as EdBatch takes them: None is all."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return None
    return tuple(axis_of(x, one) for one in dim) if isinstance(dim, tuple | list) else axis_of(x, dim)


def _reduction(function: Callable[..., Any], *functions: Any, methods: str) -> None:
    def handler(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        x = node(input)
        expect_default(dtype, x.dtype)
        return function(x, _axes_of(x, dim), keepdim)

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
            return over(x)
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
        count = math.prod(x.spec.shape[axis] for axis in over)
        if count - less <= 0:
            raise Unlike
        if name == "std":
            return eb.std(x, axes, keepdim) * math.sqrt(count / (count - less))
        return eb.sum(eb.square(x - eb.mean(x, axes, True)), axes, keepdim) / (count - less)

    register(getattr(torch, name), methods=name)(handler)


_deviation("std")
_deviation("var")


@register(torch.norm, methods="norm")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    x = node(input)
    expect_default(out)
    expect_default(dtype)
    expect_default(p, 1, 2, "fro")
    return eb.sum(eb.abs(x), _axes_of(x, dim), keepdim) if p == 1 else eb.norm(x, _axes_of(x, dim), keepdim)


@register(torch.linalg.vector_norm)
def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return norm(x, ord, dim, keepdim, dtype=dtype)


# --- along an axis


def _along(function: Callable[..., Any], *functions: Any, methods: str = "") -> None:
    def handler(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        expect_default(dtype)
        if dim is None:
            raise Unlike
        x = node(input)
        return function(x, axis_of(x, dim))

    register(*functions, methods=methods)(handler)


_along(eb.softmax, torch.softmax, F.softmax, torch.special.softmax, methods="softmax")
_along(eb.log_softmax, torch.log_softmax, F.log_softmax, torch.special.log_softmax, methods="log_softmax")
_along(eb.cumsum, torch.cumsum, methods="cumsum")
