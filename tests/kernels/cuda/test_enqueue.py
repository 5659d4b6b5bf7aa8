"""Grids that are enqueued: within CUDA's limits for any sizes, and of enough blocks for the work that there is."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda import calls, enqueue
from edbatch.kernels.tables import Listed, Rows

PROCESSORS = 132
KIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
sizes = st.one_of(st.integers(1, 600), st.integers(1, 2**31 - 1))


@pytest.fixture(scope="module")
def launches():
    """What a GPU is asked to launch: (gx, gy, gz, bx, by), and the array that says how to ask it."""
    found = []

    @KIND
    def launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, values, extra):
        found.append((gx, gy, gz, bx, by))
        assert bz == 1
        assert shared == 0
        return 0

    gpu = np.zeros(calls.WORDS, np.int64)
    gpu[calls.LAUNCH] = ctypes.cast(launch, ctypes.c_void_p).value
    gpu[calls.PROCESSORS] = PROCESSORS
    yield gpu, found
    assert launch


def launched(launches, function, *arguments):
    gpu, found = launches
    found.clear()
    function(gpu, *arguments)
    return found


def moved(launches, *shapes):
    """The grids that gather moves of these rows and widths."""
    moves = np.zeros((len(shapes) + enqueue.MOVES, enqueue.MOVE), np.int64)
    for at, (n, width) in enumerate(shapes):
        rows = Listed(Rows(0, 4 * width, 4 * width), 0)
        enqueue.note(moves[0], moves, at, rows, rows, n)
    return launched(launches, enqueue.gather, moves, len(shapes))


@given(sizes, sizes)
def test_any_sizes_are_within_the_limits(launches, n, width):
    nothing = np.zeros(9, np.int64)
    grids = [
        *launched(launches, enqueue.each_entry, 0, n, width, nothing),
        *launched(launches, enqueue.groups, 0, n * width, 1, nothing),
        *launched(launches, enqueue.groups, 0, n * width, 256, nothing),
        *moved(launches, (n, width)),
    ]
    grids += launched(launches, enqueue.add_all, 0, n, 0, 0, 0, width)
    assert len(grids) == 5
    for number, (gx, gy, gz, bx, by) in enumerate(grids):
        assert 1 <= gx < 2**31
        assert 1 <= gy <= 65535
        assert 1 <= gz <= 65535
        assert bx * by == (1024 if number == 4 else 256)


def test_more_moves_take_several_launches(launches):
    grids = moved(launches, *[(1, 1)] * 37)
    assert [gy for _, gy, *_ in grids] == [16, 16, 5]
