"""Parts, joins and other shapes of expressions; entries are counted column by column, as DyNet stores them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.checked import integer, integers
from edbatch.dynet.expression import item, one_or_batch, plain
from edbatch.dynet.implicit import DynetError, implicit
from edbatch.dynet.numeric import node
from edbatch.dynet.reads import dim_of
from edbatch.dynet.reduce import of_list, spread
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray


def concatenate(xs: Sequence[Any], d: int = 0) -> Any:
    """One after the other along an axis; numbers are vectors of one entry, vectors are columns."""
    xs = xs if xs.__class__ is list else list(xs)
    if not xs:
        raise AssertionError("List is empty, nothing to concatenate.")
    if d == 0:
        for x in xs:
            if len(x.spec.shape) != 1:
                break
        else:
            return eb.concatenate(xs)
    return _concatenate(xs, d)


def _concatenate(xs: list[Any], d: int) -> Any:
    axes = max(d + 1, *(len(x.spec.shape) for x in xs))
    batch = next((x for x in xs if isinstance(x, ExpressionArray)), None)
    if (
        d == 0
        and axes == 2
        and any(len(x.spec.shape) < 2 for x in xs)
        and all(x.spec.shape[1:] in ((), (1,)) for x in xs)
    ):
        xs, axes = [eb.reshape(x, (x.spec.size,)) for x in xs], 1
    listed = [x if len(x.spec.shape) == axes else _with_axes(x, axes) for x in xs]
    if batch is not None:
        listed = [spread(x, batch) for x in listed]
    return eb.concatenate(listed, d)


def _with_axes(x: Any, axes: int) -> Any:
    shape = dim_of(x.spec.shape)
    return eb.reshape(x, (*shape, *(1,) * (axes - len(shape))))


def _side_by_side(xs: list[Any]) -> Any:
    return concatenate(xs, 1)


concatenate_cols = of_list("concatenate_cols", _side_by_side)


def concatenate_to_batch(xs: Sequence[Any]) -> Any:
    """Expressions as a mini-batch."""
    xs = list(xs)
    if not xs:
        raise AssertionError("List is empty, nothing to concatenate_to_batch.")
    shape = dim_of(xs[0].spec.shape)
    listed = [node(x) if x.spec.shape == shape else eb.reshape(x, shape) for x in xs]
    return one_or_batch(eb.array([plain(x) if isinstance(x, ExpressionArray) else x for x in listed]))


def transpose(x: Any, dims: Sequence[int] = (1, 0)) -> Any:
    """The axes in another order; a vector becomes a row."""
    dims = list(dims)
    shape = dim_of(x.spec.shape)
    if len(shape) < len(dims):
        x = _with_axes(x, len(dims))
    if len(x.spec.shape) != len(dims):
        raise EdBatchError(f"Dimensions passed to transpose ({len(dims)}) must be equal to those of {shape}")
    found = eb.transpose(x, dims)
    while dims[-1] == len(dims) - 1 and len(dims) > len(shape):
        found = eb.reshape(found, found.spec.shape[:-1])
        dims.pop()
    return found


def _by_columns(x: Any, shape: tuple[int, ...]) -> Any:
    """The entries of one expression in another shape, counted by columns."""
    own = x.spec.shape
    if own == shape:
        return x
    if sum(size > 1 for size in own) > 1:
        x = eb.transpose(x)
    if sum(size > 1 for size in shape) <= 1:
        return eb.reshape(x, shape)
    return eb.transpose(eb.reshape(x, shape[::-1]))


def reshape(x: Any, d: Any, batch_size: int = 0) -> Any:
    """The same entries in another shape, counted by columns; those of a mini-batch follow one another.

    Args:
        x: expression.
        d: the shape; sizes of a mini-batch that do not fit are found from it.
        batch_size: how many entries the mini-batch then has; 0: it follows from the shape.
    """
    shape = tuple(integer("reshape: d", size, 1) for size in ([d] if np.ndim(d) == 0 else d))
    if not shape:
        raise EdBatchError("reshape: expected at least one dimension, got ()")
    size, count = math.prod(shape), len(x) if isinstance(x, ExpressionArray) else 1
    total = x.spec.size * count
    batch_size = integer("reshape: batch_size", batch_size) or (count if size == x.spec.size else 1)
    if batch_size * size != total:
        raise EdBatchError(f"Reshape: {x.spec.shape} (batch {count}) has {total} entries, {shape} {size * batch_size}")
    if size == x.spec.size:
        return _by_columns(x, shape)
    if count > 1:
        flat = eb.concatenate([_by_columns(one, (x.spec.size,)) for one in plain(x)])
    else:
        flat = _by_columns(x, (x.spec.size,))
    parts = [_by_columns(one, shape) for one in (eb.split(flat, batch_size) if batch_size > 1 else [flat])]
    return parts[0] if batch_size == 1 else concatenate_to_batch(parts)


def pick(e: Any, index: int = 0, dim: int = 0) -> Any:
    """Entry `index` along an axis."""
    index, shape = integer("pick: index", index), dim_of(e.spec.shape)
    if not 0 <= dim < len(shape):
        raise EdBatchError(f"Tried to PickElement on dimension {dim} bigger than input {shape}")
    size = shape[dim]
    if not 0 <= index < size:
        raise EdBatchError(f"PickElement: requested element {index} from a dimension of length {size}")
    if dim == 0 and len(e.spec.shape) == 1:
        implicit.expect()
        return eb.pick(e, index)
    return item(node(e), (*(slice(None),) * dim, index))


def pick_batch(e: Any, indices: Sequence[int], dim: int = 0) -> Any:
    """Of each entry of a mini-batch the one that its index says, along an axis; of one expression, a mini-batch."""
    numbers: Any = np.array(integers("pick_batch: indices", indices))
    e = node(e)
    if dim:
        e = eb.transpose(e, (dim, *(axis for axis in range(len(e.spec.shape)) if axis != dim)))
    return one_or_batch(eb.pick(e, numbers))


def pick_range(e: Any, s: int, e_: int, d: int = 0) -> Any:
    """Entries from `s` up to and without `e_`, along an axis."""
    return item(node(e), (*(slice(None),) * d, slice(integer("pick_range: s", s), integer("pick_range: e", e_))))


def pickrange(e: Any, s: int, e_: int) -> Any:
    """Entries from `s` up to and without `e_`."""
    return pick_range(e, s, e_)


def pick_batch_elem(x: Any, v: int) -> Any:
    """One entry of a mini-batch."""
    if isinstance(x, ExpressionArray):
        return plain(x)[integer("pick_batch_elem: v", v)]
    return pick_batch_elems(x, [v])


def pick_batch_elems(x: Any, vs: Sequence[int]) -> Any:
    """Some entries of a mini-batch, as one."""
    numbers = integers("pick_batch_elems: vs", vs)
    if isinstance(x, ExpressionArray):
        return one_or_batch(plain(x)[numbers])
    if any(numbers):
        raise EdBatchError(f"PickBatchElements: requested elements {numbers} of a mini-batch of one")
    return concatenate_to_batch([x] * len(numbers))


def _chosen(x: Any, numbers: Sequence[int], axis: int) -> Any:
    rows = [item(node(x), (*(slice(None),) * axis, slice(one, one + 1))) for one in integers("rows, columns", numbers)]
    return concatenate(rows, axis)


def select_rows(x: Any, rs: Sequence[int]) -> Any:
    """Some rows, one under the other."""
    return _chosen(x, rs, 0)


def select_cols(x: Any, cs: Sequence[int]) -> Any:
    """Some columns, side by side."""
    return _chosen(x, cs, 1)


def strided_select(x: Any, strides: Sequence[int], range_from: Sequence[int] = (), range_to: Sequence[int] = ()) -> Any:
    """Every so manieth entry from one up to another, axis by axis."""
    sizes = (*dim_of(x.spec.shape), *((len(x),) if isinstance(x, ExpressionArray) else ()))
    begin, end = [*range_from, *[0] * len(sizes)], [*range_to, *sizes[len(range_to) :]]
    step = [*strides, *[1] * len(sizes)]
    return item(node(x), tuple(slice(begin[a], end[a], step[a]) for a in range(len(sizes))))


def fold_rows(x: Any, nrows: int = 2) -> Any:
    """Sums of `nrows` rows that follow one another."""
    rows, columns = (*x.spec.shape, 1)[:2]
    if rows % integer("fold_rows: nrows", nrows, 1):
        raise EdBatchError(f"fold_rows: expected a number of rows that divides {rows}, got {nrows}")
    return eb.sum(eb.reshape(x, (rows // nrows, nrows, columns)), 1)


def kmax_pooling(x: Any, k: int, d: int = 1) -> Any:
    """The k largest entries along an axis, in their order."""
    return eb.k_max_pool(x, int(k), int(d))


def kmh_ngram(x: Any, v: int) -> Any:
    """Sums of `v` columns that follow one another."""
    columns = x.spec.shape[1] - integer("kmh_ngram: v", v, 1) + 1
    found = x[:, 0:columns]
    for first in range(1, v):
        found = eb.add(found, x[:, first : first + columns])
    return found


def to_device(e: Any, device_str: str) -> Any:
    """The expression itself; there is one device, "CPU"."""
    if device_str not in ("", "CPU"):
        raise DynetError(f"Invalid device name: {device_str}")
    return e
