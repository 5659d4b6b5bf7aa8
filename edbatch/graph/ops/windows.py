"""Windows that move over the last axes of a value, as a view of it, and what is made of them.

A view whose entries overlap is only seen inside the bodies of composites: kernels read through it, nothing is written.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from edbatch.errors import shown
from edbatch.graph.expression import Expression
from edbatch.graph.op import Kind, Op, Sample, composite, expect
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.indices import among_zeros
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.shape import EMBED, embed, is_several, reshape, transpose
from edbatch.graph.record import checked_number, checked_shape, entries_of, to_expression
from edbatch.graph.spec import Shape
from edbatch.graph.views import look

Sizes = tuple[int, ...]
AXES = ("", "length", "height, width")  # by their number


class Moves(NamedTuple):
    """How windows move over the last axes: their sizes, the strides from one to the next, the dilation of entries."""

    sizes: Sizes
    stride: Sizes
    dilation: Sizes

    @property
    def spans(self) -> Sizes:
        """From the first entry of a window to the last, both counted."""
        return tuple((size - 1) * gap + 1 for size, gap in zip(self.sizes, self.dilation, strict=True))

    def counts(self, shape: Shape) -> Sizes:
        """How many windows there are along each axis; an error if there is no room for one."""
        ends = shape[len(shape) - len(self.sizes) :]
        room = len(shape) >= len(self.sizes) and all(map(int.__le__, self.spans, ends))
        expect(room, f"expected room for a window of {' x '.join(map(str, self.spans))}")
        return tuple((end - span) // step + 1 for span, end, step in zip(self.spans, ends, self.stride, strict=True))

    def overlap(self) -> bool:
        """Whether an entry may be in several windows, or windows have gaps."""
        return any(step < size for size, step in zip(self.sizes, self.stride, strict=True)) or set(self.dilation) != {1}


def padded_shape(shape: Shape, padding: Sizes) -> Shape:
    """The shape of [channels, ...] with so many more entries on both sides of each axis but the first, checked."""
    expect(len(shape) == len(padding) + 1, f"expected [channels, {AXES[len(padding)]}]")
    return (shape[0], *(size + 2 * more for size, more in zip(shape[1:], padding, strict=True)))


def window_samples(*cases: Any) -> tuple[Sample, ...]:
    """Samples of ops of windows of one operand: its shape, padding, sizes, stride and dilation."""
    names = ("padding", "sizes", "stride", "dilation")
    return tuple(Sample((shape,), dict(zip(names, numbers, strict=True))) for shape, *numbers in cases)


def _strided(x: Any, first: Sizes, shape: Shape, strides: Sizes) -> Any:
    """Of an array [rows, ...]: from an entry of the last axes on, what lies at these strides."""
    begin = x[(..., *(slice(at, None) for at in first))]
    return np.lib.stride_tricks.as_strided(begin, (len(x), *shape), (x.strides[0], *strides))


def _windows_shape(shape: Shape, **moves: Sizes) -> Shape:
    counts = Moves(**moves).counts(shape)
    return (*moves["sizes"], *shape[: len(shape) - len(counts)], *counts)


def _windows(x: Any, sizes: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    shape = _windows_shape(x.shape[1:], sizes=sizes, stride=stride, dilation=dilation)
    *lead, ends = x.strides[1 : x.ndim - len(sizes)], x.strides[x.ndim - len(sizes) :]
    along = (end * gap for end, gap in zip(ends, dilation, strict=True))
    between = (end * step for end, step in zip(ends, stride, strict=True))
    return _strided(x, (), shape, (*along, *lead[0], *between))


def _shifted(g: Any, sizes: Sizes, dilation: Sizes) -> Any:
    """Of gradients of windows [*sizes, ..., *places]: those that each place gets, one from each entry of a window."""
    first = tuple((size - 1) * gap for size, gap in zip(sizes, dilation, strict=True))
    whole = g.shape[1:]
    shape = (*whole[: len(whole) - len(sizes)], *map(int.__sub__, whole[len(whole) - len(sizes) :], first))
    ends = g.strides[g.ndim - len(sizes) :]
    along = (own - gap * end for own, gap, end in zip(g.strides[1:], dilation, ends, strict=False))
    return _strided(g, first, shape, (*along, *g.strides[1 + len(sizes) :]))


SHIFTED = Op(
    "shifted", lambda shape, **given: _shifted(np.empty((1, *shape), np.int8), **given).shape[1:], _shifted, Kind.VIEW
)


def windows_gradient(g: Any, out: Any, x: Any, **given: Sizes) -> Expression:
    """The sum, for each entry, of what the windows give it: in the order of a window's entries."""
    moves = Moves(**given)
    if not moves.overlap():
        return _side_by_side(g, x.shape, moves)
    n = len(moves.sizes)
    lead, sizes = g.shape[: g.ndim - n], x.shape[-n:]
    places = [size + span - 1 for size, span in zip(sizes, moves.spans, strict=True)]
    along = [
        (span - 1, span - 1 + (count - 1) * step + 1, step)
        for span, step, count in zip(moves.spans, moves.stride, moves.counts(x.shape), strict=True)
    ]
    spread = embed(g, (*lead, *places), (*((0, size, 1) for size in lead), *along))
    shifted = look(spread, SHIFTED, (("sizes", moves.sizes), ("dilation", moves.dilation)))
    return sum(shifted, tuple(range(n)))


def _side_by_side(g: Any, shape: Shape, moves: Moves) -> Expression:
    """Where no windows overlap, a gradient for each entry."""
    n, lead = len(moves.sizes), len(shape) - len(moves.sizes)
    order = (*range(n, n + lead), *(axis for at in range(n) for axis in (n + lead + at, at)))
    g = transpose(g, order)
    pairs = [size for pair in zip(moves.counts(shape), moves.stride, strict=True) for size in pair]
    g = reshape(among_zeros(g, (*shape[:lead], *pairs)), (*shape[:lead], *map(int.__mul__, pairs[::2], pairs[1::2])))
    g = g[tuple(slice(0, size) for size in map(min, g.shape, shape))]
    return among_zeros(g, shape)


WINDOWS = Op("windows", _windows_shape, _windows, Kind.VIEW, gradient=windows_gradient)


def windows(x: Expression, moves: Moves) -> Expression:
    """[*sizes, ..., *counts]: the entries of all windows; for the bodies of composites."""
    return look(to_expression("windows", x), WINDOWS, tuple(moves._asdict().items()))


def padded(x: Expression, padding: Sizes, fill: float = 0.0) -> Expression:
    """With so many more entries on both sides of each of the last axes."""
    if not any(padding):
        return x
    lead = x.ndim - len(padding)
    shape = (*x.shape[:lead], *(size + 2 * more for size, more in zip(x.shape[lead:], padding, strict=True)))
    both = zip((0,) * lead + padding, x.shape, strict=True)
    return embed(x, shape, tuple((before, before + size, 1) for before, size in both), fill)


def per_axis(place: str, given: Any, ndim: int, least: int = 1) -> Sizes:
    """One integer, of at least `least`, for each of so many axes, checked; one alone is for all."""
    what = "an integer" if ndim == 1 else f"an integer, or {ndim}"
    sizes = checked_shape(place, given, least, what)
    if not is_several(given):
        sizes *= ndim
    expect(len(sizes) == ndim, f"{place}: expected {what}, got {shown(given)}")
    return sizes


def _unfolded_shape(shape: Shape, padding: Sizes, **moves: Sizes) -> Shape:
    counts, sizes = Moves(**moves).counts(padded_shape(shape, padding)), moves["sizes"]
    return (shape[0] * math.prod(sizes), math.prod(counts))


def columns(x: Expression, moves: Moves) -> Expression:
    """[entries of a window in all channels, windows], of [channels, ...]."""
    n = len(moves.sizes)
    seen = windows(x, moves)
    by_channel = transpose(seen, (n, *range(n), *range(n + 1, seen.ndim)))
    return reshape(by_channel, (x.shape[0] * math.prod(moves.sizes), -1))


def padded_moves(place: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> dict[str, Sizes]:
    """The attributes of ops of windows over the last n axes, with a padding."""
    return {
        "padding": per_axis(f"{place}: padding", padding, n, 0),
        "sizes": per_axis(f"{place}: kernel_size", kernel_size, n),
        "stride": per_axis(f"{place}: stride", stride, n),
        "dilation": per_axis(f"{place}: dilation", dilation, n),
    }


@recorded(
    composite(
        "unfold",
        _unfolded_shape,
        lambda x, padding, **moves: columns(padded(x, padding), Moves(**moves)),
        window_samples(
            ((2, 3, 4), (0, 0), (2, 2), (1, 1), (1, 1)),
            ((1, 4, 5), (1, 2), (2, 3), (2, 1), (1, 2)),
            ((2, 5, 3), (0, 0), (2, 1), (2, 2), (1, 1)),
            ((2, 3, 3), (0, 0), (1, 1), (3, 1), (1, 1)),
            ((1, 2, 3), (0, 0), (2, 3), (5, 4), (1, 1)),
        ),
    )
)
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Attributes:
    """The entries of all windows of an image, a column for each window; PyTorch's `nn.functional.unfold`.

    Arguments are those of `max_pool2d`, padded with zeros; the result is [channels * height * width of a window,
    windows].

    Raises:
        EdBatchError: there is no room for a window, or a number does not fit.

    Example: eb.unfold(eb.input([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), (2, 2)) -> [[1. 2.] [2. 3.] [4. 5.] [5. 6.]]
    """
    return padded_moves(f"unfold({x.spec!r})", 2, kernel_size, stride, padding, dilation)


@recorded(EMBED)
def pad(x: Any, pad_width: Any, constant_values: float = 0.0) -> Any:
    """More entries, all the same number, before and after those along each axis; NumPy's `pad`.

    Where none are asked for it is `x` itself, and has all of the gradient of `x`.

    Args:
        x: expression with at least one axis.
        pad_width: how many: an integer, for both sides of all axes; a pair, before and after, for all axes; or a pair
            for each axis.
        constant_values: the number; part of the type.

    Raises:
        EdBatchError: there are not as many pairs as axes, or one is none, of integers from 0 on.

    Example: eb.pad(eb.input([1.0, 2.0]), (2, 1), constant_values=9) -> [9. 9. 1. 2. 9.]
    """
    spec, ndim = x.spec, len(x.spec.shape)
    place = f"pad({spec!r}, {shown(pad_width)})"
    fill = checked_number(f"{place}: constant_values", constant_values)
    listed = entries_of(pad_width)
    if not any(is_several(pair) for pair in listed):
        listed = [listed * (2 if len(listed) == 1 else 1)]
    pairs = [checked_shape(place, pair, 0, "integers") for pair in listed] * (ndim if len(listed) == 1 else 1)
    fits = 0 < ndim == len(pairs) and all(len(pair) == 2 for pair in pairs)
    expect(fits, f"{place}: expected an integer, a pair, or a pair for each of at least one axis")
    shape = tuple(size + before + after for size, (before, after) in zip(spec.shape, pairs, strict=True))
    index = tuple((before, before + size, 1) for size, (before, _) in zip(spec.shape, pairs, strict=True))
    return {"shape_to": shape, "index": index, "fill": fill} if shape != spec.shape else x
