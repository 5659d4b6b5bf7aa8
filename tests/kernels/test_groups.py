"""Groups of equal rows against a dictionary of lists."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.groups import group_rows


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), min_size=1, max_size=3))
def test_groups(lists):
    """Of lists one after the other, with one array of what was seen."""
    seen = np.full((2, 10), -1, np.int32)
    for number, rows in enumerate(lists):
        found, offsets, members = group_rows(np.array(rows, np.int32), seen, number)
        want = {}
        for at, row in enumerate(rows):
            want.setdefault(row, []).append(at)
        assert all(part.dtype == np.int32 for part in (found, offsets, members))
        groups = [members[a:b].tolist() for a, b in itertools.pairwise(offsets)]
        assert dict(zip(found.tolist(), groups, strict=True)) == want
        assert list(want) == found.tolist()
        assert (offsets[0], offsets[-1]) == (0, len(rows))
