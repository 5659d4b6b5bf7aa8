"""Parts, joins and other shapes of expressions; entries are counted column by column, as DyNet stores them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import dim_of, with_axes
from edbatch.dynet.checked import integer, integers, named, sizes
from edbatch.dynet.expression import count, item, node, one_or_batch, plain
from edbatch.dynet.implicit import DynetError, implicit
from edbatch.dynet.reduce import spread
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray

_ALL = slice(None)


def concatenate(xs: Sequence[Any], d: int = 0) -> Any:
    """One after the other along an axis; numbers are vectors of one entry, vectors are columns."""
    xs = list(xs)
    if d == 0:
        for x in xs:
            if len(x.spec.shape) != 1:
                break
        else:
            return eb.concatenate(xs)
    axes = max(d + 1, *(len(x.spec.shape) for x in xs))
    columns = d == 0 and axes == 2 and all(x.spec.shape[1:] in ((), (1,)) for x in xs)
    if columns and any(len(x.spec.shape) < 2 for x in xs):
        axes = 1
        xs = [eb.reshape(x, (x.spec.size,)) for x in xs]
    return eb.concatenate(spread([with_axes(x, axes) for x in xs]), d)


def concatenate_to_batch(xs: Sequence[Any]) -> Any:
    """Expressions as a mini-batch."""
    xs = list(xs)
    shape = dim_of(xs[0].spec.shape)
    listed = [node(x) if x.spec.shape == shape else eb.reshape(x, shape) for x in xs]
    return one_or_batch(eb.array([plain(x) if isinstance(x, ExpressionArray) else x for x in listed]))


def transpose(x: Any, dims: Sequence[int] = (1, 0)) -> Any:
    """The axes in another order; a vector becomes a row."""
    dims, axes = list(dims), len(dim_of(x.spec.shape))
    x = with_axes(x, len(dims))
    found = eb.transpose(x, dims)
    while dims[-1] == len(dims) - 1 and len(dims) > axes:
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
    """The same entries, by columns, in another shape; `batch_size` 0: of as many entries of a mini-batch as fit."""
    shape = sizes("reshape: d", d)
    size, own = math.prod(shape), x.spec.size
    batch_size = integer("reshape: batch_size", batch_size) or (count(x) if size == own else 1)
    if size == own:
        return _by_columns(x, shape)
    entries = plain(x) if isinstance(x, ExpressionArray) else [x]
    flat = [_by_columns(one, (own,)) for one in entries]
    whole = eb.concatenate(flat) if len(flat) > 1 else flat[0]
    if batch_size == 1:
        return _by_columns(whole, shape)
    return concatenate_to_batch([_by_columns(one, shape) for one in eb.split(whole, batch_size)])


def pick(e: Any, index: int = 0, dim: int = 0) -> Any:
    """Entry `index` along an axis."""
    index = integer("pick: index", index)
    if dim == 0 and len(e.spec.shape) == 1:
        implicit.recorded_into()
        return eb.pick(e, index)
    return item(e, (*(_ALL,) * dim, index))


def pick_batch(e: Any, indices: Sequence[int], dim: int = 0) -> Any:
    """Of each entry of a mini-batch the one that its index says, along an axis; of one expression, a mini-batch."""
    numbers: Any = np.array(integers("pick_batch: indices", indices))
    e = node(e)
    if dim:
        e = eb.transpose(e, (dim, *(axis for axis in range(len(e.spec.shape)) if axis != dim)))
    return one_or_batch(eb.pick(e, numbers))


def pick_range(e: Any, s: int, e_: int, d: int = 0) -> Any:
    """Entries from `s` up to and without `e_`, along an axis."""
    return item(e, (*(_ALL,) * d, slice(integer("pick_range: s", s), integer("pick_range: e", e_))))


def pick_batch_elems(x: Any, vs: Sequence[int]) -> Any:
    """Some entries of a mini-batch, as one."""
    numbers = integers("pick_batch_elems: vs", vs)
    if isinstance(x, ExpressionArray):
        return one_or_batch(plain(x)[numbers])
    if any(numbers):
        raise EdBatchError(f"PickBatchElements: requested elements {numbers} of a mini-batch of one")
    return concatenate_to_batch([x] * len(numbers))


def _chosen(x: Any, numbers: Sequence[int], axis: int) -> Any:
    rows = [item(x, (*(_ALL,) * axis, slice(one, one + 1))) for one in integers("rows, columns", numbers)]
    return concatenate(rows, axis)


def strided_select(x: Any, strides: Sequence[int], range_from: Sequence[int] = (), range_to: Sequence[int] = ()) -> Any:
    """Every so manieth entry from one up to another, axis by axis."""
    whole = (*dim_of(x.spec.shape), count(x))
    begin, step = ([*given, *[other] * len(whole)] for given, other in ((range_from, 0), (strides, 1)))
    return item(x, tuple(map(slice, begin, (*range_to, *whole[len(range_to) :]), step)))


def fold_rows(x: Any, nrows: int = 2) -> Any:
    """Sums of `nrows` rows that follow one another."""
    rows, columns = (*x.spec.shape, 1)[:2]
    return eb.sum(eb.reshape(x, (rows // nrows, nrows, columns)), 1)


def kmh_ngram(x: Any, v: int) -> Any:
    """Sums of `v` columns that follow one another."""
    columns = x.spec.shape[1] - integer("kmh_ngram: v", v, 1) + 1
    return eb.sum([item(x, (_ALL, slice(first, first + columns))) for first in range(v)])


def to_device(e: Any, device_str: str) -> Any:
    """The expression itself; there is one device, "CPU"."""
    if device_str not in ("", "CPU"):
        raise DynetError(f"Invalid device name: {device_str}")
    return e


#: By DyNet's name.
TABLE = named(
    concatenate, concatenate_to_batch, transpose, reshape, pick, pick_batch, pick_batch_elems, pick_range,
    strided_select, fold_rows, kmh_ngram, to_device,
    concatenate_cols=(lambda xs: concatenate(xs, 1), "Columns and matrices side by side."),
    pickrange=(lambda e, s, e_: pick_range(e, s, e_), "Entries from `s` up to and without `e_`."),
    pick_batch_elem=(lambda x, v: pick_batch_elems(x, [v]), "One entry of a mini-batch."),
    select_rows=(lambda x, rs: _chosen(x, rs, 0), "Some rows, one under the other."),
    select_cols=(lambda x, cs: _chosen(x, cs, 1), "Some columns, side by side."),
    kmax_pooling=(lambda x, k, d=1: eb.k_max_pool(x, int(k), int(d)), "The k largest along an axis, in order."),
)  # fmt: skip
