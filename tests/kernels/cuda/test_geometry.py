"""Grids cover all rows and columns, are no larger than that, and within CUDA's limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda import enqueue
from edbatch.kernels.cuda.geometry import (
    MOST_BLOCKS,
    THREADS,
    over_rows,
    spread,
)
from edbatch.kernels.tables import Listed, Rows

sizes = st.one_of(st.integers(0, 600), st.integers(0, 2**40))


@given(st.integers(0, 2**31 - 1), sizes)
def test_every_entry_has_a_thread(n, width):
    """And narrow rows leave few threads idle."""
    x, y, z, along, down = spread(n, width)
    assert x < 2**31
    assert y <= 65535
    assert along * down == THREADS
    assert along < 2 * max(1, width)
    assert x * down >= n
    assert y * z * along >= width
    assert x == 1 or (x - 1) * down < n
    assert (y * z - z) * along <= width
    assert z <= 65535 or width > 2**39


@given(sizes, sizes)
def test_grids(n, width):
    """Of blocks in which a row is given to the least power of two of threads that covers it (`Share` in rows.cu)."""
    down, across = over_rows(n, width)
    assert 1 <= down <= MOST_BLOCKS < 2**31
    assert 1 <= across <= MOST_BLOCKS == 65535
    along = min(THREADS, 1 << max(0, width - 1).bit_length())
    for blocks, size, of_block in ((down, n, THREADS // along), (across, width, along)):
        assert blocks == MOST_BLOCKS or blocks * of_block >= size
        assert blocks == 1 or (blocks - 1) * of_block < size


@pytest.mark.parametrize("width", [1, 2, 3, 5, 31, 32, 33, 64, 255, 256, 257, 600])
def test_every_entry_is_reached_once(cuda, width):
    backend = cuda.backend
    for n in (1, 2, 7, 257):
        ones = np.ones((n, width), np.float32)
        source, moved = backend.from_host(ones, "C"), backend.from_host(np.zeros_like(ones), "C")
        moves = np.empty((enqueue.MOVES + 1, enqueue.MOVE), np.int64)
        there, here = (Listed(Rows(backend.address(x), 4 * width, 4 * width), 0) for x in (source, moved))
        enqueue.note(backend._gpu, moves, 0, there, here, n)
        enqueue.gather(backend._gpu, moves, 1)
        np.testing.assert_array_equal(backend.to_host(moved), ones)
