"""The kernel that moves rows: on the CPU it does what NumPy does."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda.backend import BY_HAND, KERNELS, text_of
from tests.emulated.arrays import plain
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp

ANY_BLOCK = [((1, 1, 1), (1, 1)), ((3, 1, 1), (48, 1)), ((2, 3, 1), (8, 5)), ((1, 2, 1), (256, 1))]


class Gpu:
    """All kernels that are written by hand, by name."""

    def __init__(self):
        self.driver = EmulatedDriver()
        self.kernels = dict(zip(KERNELS, self.driver.load(text_of(BY_HAND), KERNELS), strict=True))

    def array(self, values, skip=0):
        """A copy in its memory, that begins `skip` entries beyond a multiple of 256 bytes; NaN behind the last."""
        values = np.asarray(values)
        array = plain(self.driver.empty(values.size + skip, values.dtype))[skip:]
        array[:] = values.ravel()
        return array


@pytest.fixture(scope="module")
def gpu():
    return Gpu()


class Move(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_longlong)
        for name in ("source", "source_stride", "rows", "positions", "n", "target", "target_stride", "width")
    ]


Moves = Move * 16


@st.composite
def moves(draw):
    """A move: rows, width, distances between rows and skipped words of source and target; whether there are lists."""
    odd = draw(
        st.sampled_from([None, *range(5)])
    )  # all but this one are multiples of 16 bytes: then, none may be moved

    def words(number, low):
        return low + -low % 4 + 4 * draw(st.integers(0, 3)) + (draw(st.integers(1, 3)) if number == odd else 0)

    width = words(0, draw(st.integers(1, 280)))
    distances = words(1, width), words(2, width)
    return (
        draw(st.integers(0, 12)),
        width,
        distances,
        (words(3, 0), words(4, 0)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@with_cpp
@given(st.lists(moves(), min_size=1, max_size=16), st.sampled_from(ANY_BLOCK), st.integers(0, 2**32 - 1))
def test_gather(gpu, drawn, geometry, seed):
    """To the bit, and nothing else is written."""
    random = np.random.default_rng(seed)
    (x, z, _), block = geometry
    parameter = Moves()
    wanted, kept = [], []
    for move, (n, width, (stride, target_stride), (skip, target_skip), listed, placed) in zip(
        parameter, drawn, strict=False
    ):
        held = 9 if listed else max(n, 1)
        source = gpu.array(random.integers(-(2**31), 2**31, held * stride).astype(np.int32), skip)
        rows = gpu.array(random.integers(0, held, n).astype(np.int32)) if listed else None
        positions = gpu.array(random.permutation(n + 3)[:n].astype(np.int32)) if placed else None
        target = gpu.array(np.full((n + 3) * target_stride, -7, np.int32), target_skip)
        want = target.reshape(-1, target_stride).copy()
        read = source.reshape(-1, stride)[:n] if rows is None else source.reshape(-1, stride)[rows]
        want[slice(n) if positions is None else positions, :width] = read[:, :width]
        lists = (0 if x is None else x.ctypes.data for x in (rows, positions))
        move.__init__(source.ctypes.data, stride, *lists, n, target.ctypes.data, target_stride, width)
        wanted.append((target, want.ravel()))
        kept.append((source, rows, positions))
    gpu.driver.run(gpu.kernels["gather"], (x, len(drawn), z), block, parameter)
    gpu.driver.check_memory()
    for target, want in wanted:
        np.testing.assert_array_equal(target, want)
