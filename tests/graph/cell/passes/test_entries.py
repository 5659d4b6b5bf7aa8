"""Strides along divided and joined axes are those of the entries themselves."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.graph.cell.passes.entries import along, breaks, by_rows, divided

sizes = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


def places(shape, strides):
    """Where each entry lies, in their order."""
    return [sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in np.ndindex(*shape)]


@settings(deadline=None)
@given(sizes, st.data())
def test_divided_axes_are_the_same_entries(shape, data):
    strides = data.draw(st.permutations(by_rows(shape)))
    strides = tuple(stride * data.draw(st.sampled_from([0, 1, 1, -1])) for stride in strides)
    needed = breaks(shape, [strides])
    (parts,) = divided((math.prod(shape),), needed) or [None]
    assert parts is not None
    found = along(shape, strides, parts)
    assert found is not None
    assert places(parts, found) == places(shape, strides)
    for cut in needed:  # none is needless
        others = [other for other in needed if other != cut]
        merged = divided((math.prod(shape),), others)
        assert merged is None or along(shape, strides, merged[0]) is None


@settings(deadline=None)
@given(sizes, sizes, st.data())
def test_along_other_axes_entries_lie_where_they_did_or_unevenly(shape, other, data):
    if math.prod(shape) != math.prod(other):
        other = shape[::-1]
    strides = tuple(data.draw(st.integers(-3, 12)) for _ in shape)
    found = along(shape, strides, other)
    if found is not None:
        assert places(other, found) == places(shape, strides)
