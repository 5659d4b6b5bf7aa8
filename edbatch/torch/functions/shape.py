"""Other shapes, and parts put together; see `index` for parts."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.recording import lift, node, stacked
from edbatch.torch.registry import Unlike, expect_default, refused, register


def listed(given: tuple[Any, ...]) -> Any:
    """Sizes that are given one by one, or as one tuple."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


def axis_of(x: Any, dim: int, more: int = 0) -> int:
    """An axis counted from the front, of as many as a tensor has and some more."""
    if not x.spec.shape and not more:
        raise Unlike
    return axis_among(len(x.spec.shape) + more, dim)


def axis_among(axes: int, dim: int) -> int:
    """An axis of so many, counted from the front."""
    if not -axes <= dim < axes:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}], but got {dim})")
    return dim % axes


def _view(*functions: Any, methods: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of an expression and more whose result is a view."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        def handler(input: Any, *args: Any, **given: Any) -> Any:
            return function(node(input), *args, **given)

        register(*functions, methods=methods, view=True)(handler)
        return function

    return add


@_view(torch.reshape, methods="view reshape")
def reshaped(x: Any, *shape: Any) -> Any:
    if shape and isinstance(shape[0], torch.dtype):
        raise refused("view of another dtype")
    return eb.reshape(x, listed(shape))


_view(methods="view_as reshape_as")(lambda x, other: eb.reshape(x, tuple(other.shape)))
_view(torch.unsqueeze, methods="unsqueeze")(lambda x, dim: eb.unsqueeze(x, axis_of(x, dim, 1)))
_view(torch.transpose, torch.swapaxes, torch.swapdims, methods="transpose swapaxes swapdims")(
    lambda x, dim0, dim1: eb.swapaxes(x, axis_of(x, dim0), axis_of(x, dim1))
)
_view(methods="mT")(lambda x: eb.swapaxes(x, -2, -1))
_view(torch.permute, methods="permute")(lambda x, *dims: eb.transpose(x, tuple([axis_of(x, d) for d in listed(dims)])))


@_view(torch.t, methods="t T")
def _transposed(x: Any) -> Any:
    if len(x.spec.shape) > 2:
        raise refused("t or T of more than two axes", "mT or permute")
    return eb.transpose(x)


@_view(torch.flatten, methods="flatten")
def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    start, end, shape = axis_of(x, start_dim), axis_of(x, end_dim), x.spec.shape
    return eb.reshape(x, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@_view(torch.squeeze, methods="squeeze")
def _squeeze(x: Any, dim: Any = None) -> Any:
    shape = x.spec.shape
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    gone = {axis_of(x, one) for one in dims}
    rest = tuple([size for axis, size in enumerate(shape) if axis not in gone or size != 1])
    return eb.reshape(x, rest) if rest != shape else copy.copy(x)


@_view(torch.movedim, torch.moveaxis, methods="movedim moveaxis")
def _movedim(x: Any, source: Any, destination: Any) -> Any:
    sources, places = ([axis_of(x, one) for one in listed((dims,))] for dims in (source, destination))
    moved = dict(zip(places, sources, strict=True))
    rest = iter([axis for axis in range(len(x.spec.shape)) if axis not in sources])
    return eb.transpose(x, tuple([moved[to] if to in moved else next(rest) for to in range(len(x.spec.shape))]))


@_view(torch.broadcast_to, methods="expand broadcast_to")
def _expand(x: Any, *size: Any, implicit: bool = False) -> Any:
    sizes = listed(size)
    old = (1,) * (len(sizes) - len(x.spec.shape)) + tuple(x.spec.shape)
    shape = tuple([before if after == -1 else after for before, after in zip(old, sizes, strict=True)])
    if any(before not in (1, after) for before, after in zip(old, shape, strict=True)):
        raise RuntimeError(f"The expanded size {list(sizes)} must match the existing size {list(x.shape)}")
    return copy.copy(x) if shape == x.spec.shape else eb.add(eb.reshape(x, old), eb.zeros(shape))


_view(methods="expand_as")(lambda x, other: _expand(x, *other.shape))


@_view(torch.split, torch.split_with_sizes, methods="split split_with_sizes")
def _split(x: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    sizes = split_size if split_size_or_sections is None else split_size_or_sections
    axis = axis_of(x, dim)
    count = x.spec.shape[axis]
    if isinstance(sizes, int):
        if sizes < count and not count % sizes:  # the usual, and fast
            return tuple(eb.split(x, count // sizes, axis))
        sizes = [min(sizes, count - at) for at in range(0, count, sizes)]
    if 0 in sizes:
        ends = np.cumsum(sizes).tolist()
        return tuple([at(x, axis, slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)])
    return (copy.copy(x),) if list(sizes) == [count] else tuple(eb.split(x, list(sizes), axis))


@_view(torch.chunk, methods="chunk")
def _chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    axis = axis_of(x, dim)
    size = x.spec.shape[axis]
    if chunks > 1 and not size % chunks:  # the usual, and fast
        return tuple(eb.split(x, chunks, axis))
    return _split(x, -(-size // chunks), axis)


def at(x: Any, axis: int, key: Any) -> Any:
    """Part of an expression along an axis, by EdBatch's own index; of none it is PyTorch's, to which none flows."""
    whole = (*(slice(None) for _ in range(axis)), key) if axis else key
    try:
        return eb.Expression.__getitem__(x, whole)
    except EdBatchError:
        shape = np.broadcast_to(np.zeros((), x.spec.dtype), x.spec.shape)[whole].shape
        if 0 not in shape:
            raise
        return torch.zeros(shape, dtype=x.dtype)


# --- that are no views


@register(torch.cat, torch.concat, torch.concatenate)
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Any:
    xs = [lift(x) for x in tensors if 0 not in x.shape]
    if not all(len(x.spec.shape) == len(xs[0].spec.shape) > 0 for x in xs):
        raise refused(f"torch.cat of shapes {[list(x.shape) for x in xs]}", "expected as many axes, at least one")
    return eb.concatenate(xs, axis_of(xs[0], dim if axis is None else axis))


@register(torch.stack)
def stack(tensors: Any, dim: int = 0) -> Any:
    xs = [lift(x) for x in tensors]
    axis = axis_of(xs[0], dim, 1)
    return eb.stack(xs, axis) if axis or len(xs[0].spec.shape) != 1 else stacked(xs)


@register(torch.hstack)
def hstack(tensors: Any) -> Any:
    return cat(tensors, 0 if len(tensors[0].shape) < 2 else 1)


@register(torch.vstack, torch.row_stack)
def vstack(tensors: Any) -> Any:
    return cat([node(x) if len(x.shape) > 1 else eb.reshape(node(x), (1, -1)) for x in tensors])


@register(methods="repeat")
def repeat(input: Any, *sizes: Any) -> Any:
    x, sizes = node(input), listed(sizes)
    if len(sizes) < len(x.spec.shape):
        raise refused(f"repeat{tuple(sizes)} of {list(x.shape)}", "expected a number for each axis")
    x = eb.reshape(x, (1,) * (len(sizes) - len(x.spec.shape)) + tuple(x.spec.shape))
    for axis, times in enumerate(sizes):
        x = eb.concatenate([x] * times, axis) if times != 1 else x
    return copy.copy(x)


@register(torch.flip, methods="flip")
def flip(input: Any, *dims: Any) -> Any:
    x = node(input)
    axes = [axis_of(x, dim) for dim in listed(dims)]
    if len(set(axes)) < len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    for axis in axes:
        x = eb.flip(x, axis)
    return x


@register(F.pad)
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    expect_default(mode, "constant")
    if min(pad) < 0:
        raise Unlike
    x = node(input)
    pairs = [(0, 0)] * (len(x.spec.shape) - len(pad) // 2)
    pairs += [tuple(pad[at : at + 2]) for at in range(len(pad) - 2, -1, -2)]
    return eb.pad(x, pairs, 0.0 if value is None else float(value))
