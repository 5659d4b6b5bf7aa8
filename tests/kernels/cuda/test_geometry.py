"""Grids cover all rows and columns, are no larger than that, and within CUDA's limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda import enqueue
from edbatch.kernels.cuda.geometry import (
    MOST_BLOCKS,
    THREADS,
    lanes_of_lists,
    over_columns,
    over_rows,
    parts,
    spread,
    threads_for,
)
from edbatch.kernels.tables import Listed, Rows
from edbatch.memory.plan.format import SLICE, Batch, Operand
from tests.kernels.batches import adding, made_once, run

sizes = st.one_of(st.integers(0, 600), st.integers(0, 2**40))


@given(sizes)
def test_threads_along_a_row(width):
    threads = threads_for(width)
    assert threads in (32, 64, 128, 256)
    assert threads == 256 or threads >= width
    assert threads == 32 or threads < 2 * width


@given(sizes, st.integers(1, 1024))
def test_parts_cover(size, of):
    assert parts(size, of) * of >= size
    assert parts(size, of) == 1 or (parts(size, of) - 1) * of < size


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


def test_long_lists_are_shared_and_many_lists_are_not():
    assert lanes_of_lists(1, 10_000, 132) == 256  # the losses of a mini-batch
    assert lanes_of_lists(64, 100, 132) == 32  # those of each sample
    assert lanes_of_lists(256, 500, 132) == 32
    assert lanes_of_lists(1, 10, 132) == 1
    assert lanes_of_lists(1000 * 512, 3, 132) == 1  # arcs that end at a place of a lattice
    assert lanes_of_lists(256 * 10**6, 100, 132) == 1  # there is enough to do


@given(sizes)
def test_columns_of_sums(width):
    x, along, down = over_columns(width)
    assert along * down == 1024
    assert x * along >= width
    assert along in ((32,) if width >= 2048 else (1, 2, 4, 8))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 31, 32, 33, 64, 255, 256, 257, 600])
def test_every_entry_is_reached_once(cuda, width):
    backend = cuda.backend
    for n in (1, 2, 7, 257):
        ones, zeros = np.ones((n, width), np.float32), np.zeros((n, width), np.float32)
        (added, _), _ = run(
            backend, [zeros, ones], [(0, 0, width), (1, 0, width)], [Batch(0, 0, n, 0, 0, -1)],
            [Operand(SLICE, 0, 0, 1, 0, n), Operand(SLICE, 1, 0, 1, 0, n)], [], [0], [0], made_once(tasks=(adding,)),
        )  # fmt: skip
        np.testing.assert_array_equal(added, ones)
        source, moved = backend.from_host(ones, "C"), backend.from_host(zeros, "C")
        moves = np.empty((enqueue.MOVES + 1, enqueue.MOVE), np.int64)
        there, here = (Listed(Rows(backend.address(x), 4 * width, 4 * width), 0) for x in (source, moved))
        enqueue.note(moves, 0, there, here, n)
        enqueue.gather(backend._gpu, moves, 1)
        np.testing.assert_array_equal(backend.to_host(moved), ones)
