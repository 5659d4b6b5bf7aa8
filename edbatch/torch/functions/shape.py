"""Other shapes, parts, and parts put together."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import expect_default, refused, register
from edbatch.torch.unread import values_of


def listed(given: tuple[Any, ...]) -> Any:
    """Sizes that are given one by one, or as one tuple."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


def axis_of(x: Any, dim: int, more: int = 0) -> int:
    """An axis counted from the front."""
    axes = max(len(x.spec.shape) + more, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}], but got {dim})")
    return dim % axes


def at_axis(axis: int, key: Any) -> tuple[Any, ...]:
    """An index of everything but what `key` says along an axis."""
    return (*(slice(None) for _ in range(axis)), key)


@register(methods="view reshape", view=True)
def view(input: Any, *shape: Any) -> Any:
    if shape and isinstance(shape[0], torch.dtype):
        raise refused("view of another dtype")
    return eb.reshape(node(input), listed(shape))


register(torch.reshape, view=True)(lambda input, shape: view(input, shape))
register(methods="view_as reshape_as", view=True)(lambda input, other: view(input, tuple(other.shape)))


@register(torch.flatten, methods="flatten", view=True)
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    x = node(input)
    start, end = axis_of(x, start_dim), axis_of(x, end_dim)
    shape = x.spec.shape
    return eb.reshape(x, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@register(torch.unflatten, methods="unflatten", view=True)
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    x = node(input)
    axis, shape = axis_of(x, dim), x.spec.shape
    if -1 in sizes:
        rest = shape[axis] // -math.prod(sizes)
        sizes = [rest if size == -1 else size for size in sizes]
    return eb.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))


@register(torch.squeeze, methods="squeeze", view=True)
def squeeze(input: Any, dim: Any = None) -> Any:
    x = node(input)
    shape = x.spec.shape
    axes = (
        range(len(shape)) if dim is None else [axis_of(x, one) for one in (dim if isinstance(dim, tuple) else (dim,))]
    )
    gone = [axis for axis in axes if shape and shape[axis] == 1]
    return eb.reshape(x, tuple(size for axis, size in enumerate(shape) if axis not in gone)) if gone else copy.copy(x)


@register(torch.unsqueeze, methods="unsqueeze", view=True)
def unsqueeze(input: Any, dim: int) -> Any:
    x = node(input)
    return eb.unsqueeze(x, axis_of(x, dim, 1))


@register(torch.transpose, torch.swapaxes, torch.swapdims, methods="transpose swapaxes swapdims", view=True)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    x = node(input)
    return eb.swapaxes(x, axis_of(x, dim0), axis_of(x, dim1))


def _transposed(input: Any) -> Any:
    x = lift(input)
    if len(x.shape) > 2:
        raise refused("t or T of more than two axes", "mT or permute")
    return eb.transpose(x)


register(torch.t, methods="t T", view=True)(_transposed)
register(methods="mT", view=True)(lambda input: transpose(input, -2, -1))


@register(torch.permute, methods="permute", view=True)
def permute(input: Any, *dims: Any) -> Any:
    x = node(input)
    return eb.transpose(x, tuple(axis_of(x, dim) for dim in listed(dims)))


@register(torch.movedim, torch.moveaxis, methods="movedim moveaxis", view=True)
def movedim(input: Any, source: Any, destination: Any) -> Any:
    x = node(input)
    pairs = zip(*[one if isinstance(one, tuple | list) else (one,) for one in (source, destination)], strict=True)
    moved = {axis_of(x, to): axis_of(x, at) for at, to in pairs}
    rest = iter([axis for axis in range(len(x.shape)) if axis not in moved.values()])
    return eb.transpose(x, tuple(moved[to] if to in moved else next(rest) for to in range(len(x.shape))))


@register(torch.cat, torch.concat, torch.concatenate)
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Any:
    xs = [x if x.__class__ is eb.Expression else lift(x) for x in tensors]
    if not all(len(x.shape) == len(xs[0].shape) > 0 for x in xs):
        raise refused(f"torch.cat of shapes {[list(x.shape) for x in xs]}", "expected as many axes, at least one")
    return eb.concatenate(xs, axis_of(xs[0], dim if axis is None else axis))


@register(torch.stack)
def stack(tensors: Any, dim: int = 0) -> Any:
    xs = [lift(x) for x in tensors]
    return eb.stack(xs, axis_of(xs[0], dim, 1))


@register(torch.hstack)
def hstack(tensors: Any) -> Any:
    xs = [node(x) if x.shape else unsqueeze(x, 0) for x in tensors]
    return cat(xs, 0 if len(xs[0].shape) == 1 else 1)


@register(torch.vstack, torch.row_stack)
def vstack(tensors: Any) -> Any:
    return cat([node(x) if len(x.shape) > 1 else eb.reshape(node(x), (1, -1)) for x in tensors], 0)


@register(torch.split, torch.split_with_sizes, methods="split split_with_sizes", view=True)
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    x = node(tensor)
    sizes = split_size if split_size_or_sections is None else split_size_or_sections
    axis = axis_of(x, dim)
    count = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, count - at) for at in range(0, count, sizes)]
    return (copy.copy(x),) if len(sizes) == 1 and sizes[0] == count else tuple(eb.split(x, list(sizes), axis))


@register(torch.chunk, methods="chunk", view=True)
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    size = x.spec.shape[axis]
    if chunks > 1 and not size % chunks:  # the usual, and fast
        return tuple(eb.split(x, chunks, axis))
    return split(x, -(-size // chunks), axis)


@register(torch.unbind, methods="unbind", view=True)
def unbind(input: Any, dim: int = 0) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    return tuple([x_at(x, axis, i) for i in range(x.shape[axis])])


def x_at(x: Any, axis: int, key: Any) -> Any:
    """Part of an expression along an axis, by EdBatch's own index."""
    return eb.Expression.__getitem__(x, at_axis(axis, key) if axis else key)


@register(torch.narrow, methods="narrow", view=True)
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    first = int(start) + (x.shape[axis] if start < 0 else 0)
    if first + length > x.shape[axis]:
        raise IndexError(f"start ({start}) + length ({length}) exceeds dimension size ({x.shape[axis]}).")
    return x_at(x, axis, slice(first, first + length))


@register(torch.select, methods="select", view=True)
def select(input: Any, dim: int, index: Any) -> Any:
    x = node(input)
    return x_at(x, axis_of(x, dim), int(index))


@register(torch.broadcast_to, methods="expand broadcast_to", view=True)
def expand(input: Any, *size: Any, implicit: bool = False) -> Any:
    x, sizes = node(input), listed(size)
    old = (1,) * (len(sizes) - len(x.shape)) + tuple(x.spec.shape)
    shape = tuple(before if after == -1 else after for before, after in zip(old, sizes, strict=True))
    if any(before not in (1, after) for before, after in zip(old, shape, strict=True)):
        raise RuntimeError(f"The expanded size {list(sizes)} must match the existing size {list(x.shape)}")
    return copy.copy(x) if shape == x.spec.shape else eb.add(eb.reshape(x, old), eb.zeros(shape))


register(methods="expand_as", view=True)(lambda input, other: expand(input, *other.shape))


@register(methods="repeat")
def repeat(input: Any, *sizes: Any) -> Any:
    x, sizes = node(input), listed(sizes)
    if len(sizes) < len(x.shape):
        raise refused(f"repeat{tuple(sizes)} of {list(x.shape)}", "expected a number for each axis")
    x = eb.reshape(x, (1,) * (len(sizes) - len(x.shape)) + tuple(x.spec.shape))
    for axis, times in enumerate(sizes):
        x = eb.concatenate([x] * times, axis) if times != 1 else x
    return copy.copy(x)


@register(torch.tile, methods="tile")
def tile(input: Any, *dims: Any) -> Any:
    dims = listed(dims)
    return repeat(input, *(1,) * (len(input.shape) - len(dims)), *dims)


@register(torch.flip, methods="flip")
def flip(input: Any, *dims: Any) -> Any:
    x = node(input)
    for dim in listed(dims):
        x = eb.flip(x, axis_of(x, dim))
    return x


@register(F.pad)
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    expect_default("mode", mode, "constant")
    if min(pad) < 0:
        raise refused("pad by negative sizes", "a slice")
    x = node(input)
    pairs = [(0, 0)] * (len(x.shape) - len(pad) // 2) + [tuple(pad[at : at + 2]) for at in range(len(pad) - 2, -1, -2)]
    return eb.pad(x, pairs, 0.0 if value is None else float(value))


# --- by index


def integers(index: Any) -> np.ndarray:
    """An index as an array, which reads it where it is computed."""
    found = np.asarray(values_of(index))
    if found.dtype.kind not in "iu":
        raise refused(f"an index of dtype {found.dtype}", "expected integers")
    return found


def _key(key: Any) -> Any:
    found = values_of(key)
    if isinstance(found, torch.Tensor):
        if found.is_floating_point():
            raise refused("an index of floats", "expected integers or bools")
        found = found.item() if not found.ndim else found.numpy()
    return np.asarray(found) if isinstance(found, list) else found


@register(torch.Tensor.__getitem__, view=True)
def getitem(input: Any, key: Any) -> Any:
    if isinstance(input, torch.Tensor) and not isinstance(lift(input), eb.Parameter):
        raise refused("x[i] with a lazy index")
    if key.__class__ is int and isinstance(lift(input), eb.Parameter):
        return eb.lookup(lift(input), key)
    found: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        one = _key(part)
        if isinstance(one, bool):
            raise refused("x[True]")
        if isinstance(one, np.ndarray) and one.dtype == bool:
            found += one.nonzero()
        else:
            found.append(one)
    x = node(input)
    if sum(isinstance(one, np.ndarray) for one in found) > 1:
        x, found = _one_index(x, found)
    return eb.Expression.__getitem__(x, tuple(found) if len(found) != 1 else found[0])


def _one_index(x: Any, key: list[Any]) -> tuple[Any, list[Any]]:
    """Arrays that index neighbouring axes, as one that indexes all of their entries."""
    arrays = [one for one in key if isinstance(one, np.ndarray)]
    first = next(at for at, one in enumerate(key) if isinstance(one, np.ndarray))
    end = first + len(arrays)
    if not all(isinstance(one, np.ndarray) for one in key[first:end]) or any(one in (None, ...) for one in key[:first]):
        raise refused("an index with several tensors that are not side by side", "index one after the other")
    shape = x.spec.shape
    sizes = shape[first:end]
    for one, size in zip(arrays, sizes, strict=True):
        if (one < -size).any() or (one >= size).any():
            raise IndexError(f"index out of range of {size} entries")
    flat = np.ravel_multi_index([one % size for one, size in zip(arrays, sizes, strict=True)], sizes)
    return eb.reshape(x, (*shape[:first], math.prod(sizes), *shape[end:])), [*key[:first], flat, *key[end:]]


@register(torch.index_select, methods="index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    return x_at(x, axis, integers(index).reshape(-1))


@register(torch.masked_select, methods="masked_select")
def masked_select(input: Any, mask: Any) -> Any:
    chosen = np.asarray(values_of(mask))
    if chosen.shape != input.shape:
        raise refused("masked_select with a mask of another shape")
    return getitem(input, torch.from_numpy(chosen))


@register(torch.gather, methods="gather")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    x = node(input)
    number = getattr(index, "unread", None)  # which is not read here
    return eb.gather(x, integers(index) if number is None else number, axis_of(x, dim))


@register(torch.scatter_add, methods="scatter_add")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    x = node(input)
    return eb.scatter_add(x, integers(index), node(src), axis_of(x, dim))


@register(torch.topk, methods="topk")
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    from edbatch.torch.unread import Unread

    expect_default("largest", largest, True)
    x = node(input)
    values, numbers = eb.top_k(x, k, axis_of(x, dim))
    return torch.return_types.topk((values, Unread(numbers, torch.int64)))


def _triangle(name: str, keep: Any) -> None:
    def handler(input: Any, diagonal: int = 0) -> Any:
        x = node(input)
        return eb.where(keep(np.ones(x.spec.shape[-2:]), diagonal), x, 0.0)

    register(getattr(torch, name), methods=name)(handler)


_triangle("tril", np.tril)
_triangle("triu", np.triu)
