"""Parts of tensors, by index."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

import edbatch as eb
from edbatch.torch.functions.shape import at, axis_of
from edbatch.torch.recording import lift, node, recording
from edbatch.torch.registry import Unlike, refused, register
from edbatch.torch.unread import Unread, values_of

_part = eb.Expression.__getitem__  # by EdBatch's own index


def read(index: Any) -> Any:
    """An index, with arrays in the place of tensors, and numbers where they have no axes."""
    found = values_of(index)
    if isinstance(found, torch.Tensor):
        recording().expect_constant(found)
        found = found.item() if not found.ndim else found.numpy()
    return np.asarray(found, None if found else int) if isinstance(found, list) else found


def integers(index: Any) -> np.ndarray:
    """An index as an array, which reads it where it is computed."""
    found = np.asarray(read(index))
    if found.dtype.kind not in "iu":
        raise refused(f"an index of dtype {found.dtype}", "expected integers")
    return found


@register(torch.unbind, methods="unbind", view=True)
def unbind(input: Any, dim: int = 0) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    return tuple([at(x, axis, i) for i in range(x.spec.shape[axis])])


@register(torch.narrow, methods="narrow", view=True)
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    x = node(input)
    axis = axis_of(x, dim)
    first = int(start) + (x.spec.shape[axis] if start < 0 else 0)
    if not 0 <= first <= first + length <= x.spec.shape[axis]:
        raise IndexError(f"start ({start}) + length ({length}) exceeds dimension size ({x.spec.shape[axis]}).")
    return at(x, axis, slice(first, first + length))


@register(torch.select, methods="select", view=True)
def select(input: Any, dim: int, index: Any) -> Any:
    x = node(input)
    return at(x, axis_of(x, dim), int(index))


@register(torch.Tensor.__getitem__, view=True)
def getitem(input: Any, key: Any) -> Any:
    x = lift(input)
    if key.__class__ is int:  # the usual, and fast
        return eb.lookup(x, key) if isinstance(x, eb.Parameter) else _part(node(x), key)
    found: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        one = read(part)
        if isinstance(one, np.ndarray) and one.dtype == bool:
            axis = sum([part is not None for part in found])
            if one.shape != tuple(x.shape[axis : axis + one.ndim]) and not any(part is ... for part in found):
                raise IndexError(f"The shape of the mask {list(one.shape)} does not match that of {list(x.shape)}")
            found += one.nonzero()
        elif isinstance(one, bool | float | eb.Expression):
            raise refused(f"x[{one}]", "expected integers, slices, or a comparison")
        else:
            found.append(one)
    x, arrays = node(x), [one for one in found if isinstance(one, np.ndarray)]
    shape = None
    if any(one.ndim > 1 for one in arrays):  # which index by their entries, in order
        shape = np.broadcast_to(0.0, x.spec.shape)[tuple(found)].shape
        flat = map(np.ravel, np.broadcast_arrays(*arrays))
        found = [next(flat) if isinstance(one, np.ndarray) else one for one in found]
    if len(arrays) > 1:
        x, found = _one_index(x, found)
    y = at(x, 0, tuple(found) if len(found) != 1 else found[0])
    return y if shape is None else torch.reshape(y, shape)


def _one_index(x: Any, key: list[Any]) -> tuple[Any, list[Any]]:
    """Arrays that index neighbouring axes, as one that indexes all of their entries."""
    arrays = [one for one in key if isinstance(one, np.ndarray)]
    first = next(place for place, one in enumerate(key) if isinstance(one, np.ndarray))
    end, shape = first + len(arrays), x.spec.shape
    if not all(isinstance(one, np.ndarray) for one in key[first:end]) or any(one in (None, ...) for one in key[:first]):
        raise Unlike
    sizes = shape[first:end]
    for one, size in zip(arrays, sizes, strict=True):
        if (one < -size).any() or (one >= size).any():
            raise IndexError(f"index out of range of {size} entries")
    flat = np.ravel_multi_index([one % size for one, size in zip(arrays, sizes, strict=True)], sizes)
    return eb.reshape(x, (*shape[:first], math.prod(sizes), *shape[end:])), [*key[:first], flat, *key[end:]]


@register(torch.index_select, methods="index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:
    x, chosen = node(input), integers(index).reshape(-1)
    if (chosen < 0).any():
        raise IndexError("index out of range in self")
    return at(x, axis_of(x, dim), chosen)


@register(torch.masked_select, methods="masked_select")
def masked_select(input: Any, mask: Any) -> Any:
    chosen = np.asarray(read(mask))
    if chosen.shape != tuple(input.shape) or not chosen.ndim:
        raise Unlike
    return getitem(input, (chosen,))


@register(torch.gather, methods="gather")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    x = node(input)
    return eb.gather(x, index.unread if isinstance(index, Unread) else integers(index), axis_of(x, dim))


@register(torch.repeat_interleave, methods="repeat_interleave")
def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    x = eb.reshape(node(input), (-1,)) if dim is None else node(input)
    axis = axis_of(x, dim or 0)
    return at(x, axis, np.repeat(np.arange(x.spec.shape[axis]), integers(repeats)))
