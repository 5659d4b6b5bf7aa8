"""Groups of equal rows against a dictionary of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.groups import group


@given(st.lists(st.integers(0, 9), max_size=30))
def test_groups(rows):
    found = group(np.array(rows, np.int32))
    want = {}
    for at, row in enumerate(rows):
        want.setdefault(row, []).append(at)
    if len(want) == len(rows):
        assert found is None
        return
    assert all(part.dtype == np.int32 for part in found)
    members = np.split(found.members, found.offsets[1:-1])
    assert {row: part.tolist() for row, part in zip(found.rows.tolist(), members, strict=True)} == want
    assert (found.offsets[0], found.offsets[-1]) == (0, len(rows))


def test_rows_of_any_size():
    found = group(np.array([10**6, 0, 10**6], np.int32))
    assert (found.rows.tolist(), found.offsets.tolist(), found.members.tolist()) == ([10**6, 0], [0, 2, 3], [0, 2, 1])
