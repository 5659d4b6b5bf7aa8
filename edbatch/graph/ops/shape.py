"""Views of memory: index, slice, split, reshape, transpose, flip. They cost no node, no batch and no copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from edbatch.base.numbers import as_integer
from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import Kind, Op, Sample, declare, expect, no_gradient
from edbatch.graph.op_callers import Attributes, P, viewed
from edbatch.graph.record import checked_index, checked_shape, entries_of, record
from edbatch.graph.spec import Shape, Spec
from edbatch.graph.views import look

# A static index: per axis an int or a (start, stop, step) triple, hashable as part of a type.
Index = tuple[int | tuple[int | None, int | None, int | None], ...]


def _as_key(index: Index) -> tuple[int | slice, ...]:
    return tuple(part if isinstance(part, int) else slice(*part) for part in index)


def _index_shape(shape: Shape, index: Index) -> Shape:
    return np.empty(shape, dtype=np.bool_)[_as_key(index)].shape if shape else ()


def _view(name: str, shape: Any, forward: Any, gradient: Any, *samples: Sample) -> Op:
    return declare(Op(name, shape, forward, Kind.VIEW, gradient=gradient, samples=samples))


# The transpose of INDEX: zeros, or another number, with x at an index.
EMBED = declare(
    Op(
        "embed",
        lambda shape, shape_to, index, fill: shape_to,
        gradient=lambda g, out, x, shape_to, index, fill: look(g, INDEX, (("index", index),)),
        samples=(
            Sample(((2,),), {"shape_to": (5,), "index": ((1, 4, 2),), "fill": 0.0}),
            Sample(((3,),), {"shape_to": (4, 3), "index": (1, (None, None, -1)), "fill": 0.5}),
        ),
    )
)


def embed(x: Expression, shape: Shape, index: Index, fill: float = 0.0) -> Expression:
    """Zeros of `shape`, or another number, with x at `index`."""
    return record(EMBED, (x,), shape_to=shape, index=index, fill=fill)


INDEX: Op = _view(
    "index",
    _index_shape,
    lambda x, index: x[(slice(None), *_as_key(index))],
    lambda g, out, x, index: embed(g, x.shape, index),
    Sample(((5,),), {"index": ((1, 4, None),)}),
    Sample(((5,),), {"index": (2,)}),
    Sample(((4, 3),), {"index": (1,)}),
    Sample(((4, 3),), {"index": ((None, None, -1), (0, 3, 2))}),
)


def _reshape_shape(shape: Shape, shape_to: Shape) -> Shape:
    expect(math.prod(shape) == math.prod(shape_to), f"expected {math.prod(shape)} entries in {shape_to}")
    return shape_to


RESHAPE = _view(
    "reshape",
    _reshape_shape,
    lambda x, shape_to: x.reshape(len(x), *shape_to),
    lambda g, out, x, shape_to: reshape(g, x.shape),  # type: ignore[has-type]
    Sample(((2, 3),), {"shape_to": (3, 2)}),
    Sample(((6,),), {"shape_to": (2, 1, 3)}),
)
TRANSPOSE = _view(
    "transpose",
    lambda shape, axes: tuple(shape[axis] for axis in axes),
    lambda x, axes: x.transpose(0, *(axis + 1 for axis in axes)),
    lambda g, out, x, axes: transpose(g, [axes.index(axis) for axis in range(len(axes))]),  # type: ignore[has-type]
    Sample(((2, 3),), {"axes": (1, 0)}),
    Sample(((2, 3, 4),), {"axes": (2, 0, 1)}),
)
STOP_GRADIENT = _view("stop_gradient", lambda shape: shape, lambda x: x, no_gradient, Sample(((3,),)))


def checked_axis(name: str, spec: Spec, axis: Any, new: int = 0) -> int:
    """`axis` as an int in [0, number of axes + new)."""
    ndim = len(spec.shape) + new
    try:
        found = as_integer(axis)
    except TypeError:
        raise EdBatchError(f"{name}({spec!r}): expected an integer axis, got {shown(axis)}") from None
    if not ndim:
        raise EdBatchError(f"{name}({spec!r}): a number has no axes; for a list of numbers, give list(xs)")
    if not -ndim <= found < ndim:
        raise EdBatchError(f"{name}({spec!r}): there is no axis {shown(found)}, expected one in [{-ndim}, {ndim})")
    return found % ndim


def without_ellipsis(place: Any, ndim: int, key: Any) -> list[Any]:
    """The parts of an index into so many axes, with `...` written out as the slices it stands for."""
    parts = list(key) if isinstance(key, tuple) else [key]
    ellipses = [at for at, part in enumerate(parts) if part is Ellipsis]
    missing = ndim - sum(part is not None and part is not Ellipsis for part in parts)
    if len(ellipses) > 1 or missing < 0:
        raise EdBatchError(f"{place}: too many indices for {ndim} axes")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def parse_index(place: Any, shape: Shape, key: Any) -> Index:
    """An index as the user writes it, as it is in a type; errors begin with `place`."""
    index: list[int | tuple[int | None, int | None, int | None]] = []
    for part, size in zip(without_ellipsis(place, len(shape), key), shape, strict=True):
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(size)
            except (TypeError, ValueError) as error:
                raise EdBatchError(f"{place}: {error}") from None
            if len(range(start, stop, step)) == 0:
                raise EdBatchError(f"{place}: the slice {start}:{stop}:{shown(step)} of {size} entries is empty")
            step = max(-size, min(step, size))  # which shows the same, and has a text however large it was
            index.append((start, stop if stop >= 0 else None, step))
        elif isinstance(part, bool):
            raise EdBatchError(f"{place}: expected an integer, got bool")
        else:
            index.append(checked_index(part, size, place))
    return tuple(index)


def _several(op: Op) -> Callable[[Callable[P, Any]], Callable[P, list[Expression]]]:
    """Make the caller of several views at once; see `viewed`."""
    made: Any = viewed(op)
    return made


def is_several(parts: Any) -> bool:
    """Whether sizes are listed, and not one integer that says how many there are."""
    try:
        as_integer(parts)
    except TypeError:
        return True
    return False


def is_advanced(part: Any) -> bool:
    """Whether a part of an index is None or several integers; see `index`."""
    return part is None or isinstance(part, list | tuple | range) or (isinstance(part, np.ndarray) and part.ndim > 0)


@_several(INDEX)
def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Attributes]:
    """Cut an expression along an axis of one sample's value into views; costs no batch and no copy.

    Args:
        parts: a number of equal parts, or the sizes of the parts.

    Raises:
        EdBatchError: the axis does not divide into these parts.

    Example: eb.split(eb.input([1.0, 2.0, 3.0, 4.0]), 2)[1] -> [3. 4.]
    """
    place = f"split({x.spec!r}, {shown(parts)}, axis={shown(axis)})"
    at = checked_axis("split", x.spec, axis)
    entries = x.spec.shape[at]
    sizes = checked_shape(place, parts, what="an integer, or several")
    if not is_several(parts):
        (count,) = sizes
        expect(entries % count == 0, f"{place}: {entries} entries do not divide evenly")
        sizes = (entries // count,) * count
    expect(sum(sizes) == entries, f"{place}: expected sizes adding to {entries}")
    keys = [(*[slice(None)] * at, slice(end - size, end)) for end, size in zip(accumulate(sizes), sizes, strict=True)]
    return [{"index": parse_index(place, x.spec.shape, key)} for key in keys]


@viewed(RESHAPE)
def reshape(x: Any, shape: int | Sequence[int]) -> Attributes:
    """The same entries in another shape (row-major order); one size may be -1.

    Raises:
        EdBatchError: the number of entries differs.

    Example: eb.reshape(eb.input([1.0, 2.0, 3.0, 4.0]), (2, -1)) -> [[1. 2.] [3. 4.]]
    """
    place, size = f"reshape({x.spec!r}, {shown(shape)})", x.spec.size
    given = list(checked_shape(place, shape, least=-1))
    known = math.prod(size for size in given if size != -1)
    if given.count(-1) == 1 and known > 0 and size % known == 0:
        given[given.index(-1)] = size // known
    expect(min(given, default=1) > 0, f"{place}: expected sizes that give {size} entries")
    return {"shape_to": tuple(given)}


@viewed(TRANSPOSE)
def transpose(x: Any, axes: Sequence[int] | None = None) -> Attributes:
    """Permute the axes; reversed by default. `x.T` is `transpose(x)`.

    Raises:
        EdBatchError: `axes` is no permutation of the axes.

    Example: eb.transpose(eb.input([[1.0, 2.0], [3.0, 4.0]])) -> [[1. 3.] [2. 4.]]
    """
    axes_of_x = range(len(x.spec.shape))
    order = tuple(
        checked_axis("transpose", x.spec, axis) for axis in (axes_of_x[::-1] if axes is None else entries_of(axes))
    )
    permutes = sorted(order) == list(axes_of_x)
    expect(permutes, f"transpose({x.spec!r}, {shown(axes)}): expected a permutation of the axes")
    return {"axes": order}


@viewed(RESHAPE)
def squeeze(x: Any, axis: int | None = None) -> Attributes:
    """Without an axis of size 1; by default without all of them.

    Raises:
        EdBatchError: the axis has another size.

    Example: eb.squeeze(eb.input([[1.0], [2.0]]), 1) -> [1. 2.]
    """
    spec = x.spec
    if axis is None:
        return {"shape_to": tuple(size for size in spec.shape if size != 1)}
    at = checked_axis("squeeze", spec, axis)
    expect(spec.shape[at] == 1, f"squeeze({spec!r}, {axis}): expected an axis of size 1")
    return {"shape_to": (*spec.shape[:at], *spec.shape[at + 1 :])}


@viewed(RESHAPE)
def unsqueeze(x: Any, axis: int) -> Attributes:
    """With a new axis of size 1; `axis` counts those of the result. `x[:, None]` is `unsqueeze(x, 1)`.

    Example: eb.unsqueeze(eb.input([1.0, 2.0]), -1) -> [[1.] [2.]]
    """
    at = checked_axis("unsqueeze", x.spec, axis, 1)
    return {"shape_to": (*x.spec.shape[:at], 1, *x.spec.shape[at:])}


@viewed(TRANSPOSE)
def swapaxes(x: Any, first: int, second: int) -> Attributes:
    """Two axes change places.

    Example: eb.swapaxes(eb.input([[1.0, 2.0], [3.0, 4.0]]), 0, -1) -> [[1. 3.] [2. 4.]]
    """
    order = list(range(len(x.spec.shape)))
    a, b = (checked_axis("swapaxes", x.spec, axis) for axis in (first, second))
    order[a], order[b] = b, a
    return {"axes": tuple(order)}


@viewed(INDEX)
def flip(x: Any, axis: int = 0) -> Attributes:
    """The entries along an axis in reverse order.

    Example: eb.flip(eb.input([1.0, 2.0, 3.0])) -> [3. 2. 1.]
    """
    key = (*[slice(None)] * checked_axis("flip", x.spec, axis), slice(None, None, -1))
    return {"index": parse_index("flip", x.spec.shape, key)}


@viewed(STOP_GRADIENT)
def stop_gradient(x: Any) -> Attributes:
    """The same value, through which no gradient will flow.

    Example: eb.stop_gradient(eb.scalar(2)) -> 2.0
    """
    return {}


for _class in (Expression, Parameter):
    setattr(_class, "T", property(transpose))  # noqa: B010 (mypy knows that they have none)
