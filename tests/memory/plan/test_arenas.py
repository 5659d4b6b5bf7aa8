import numpy as np

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows

F32 = np.dtype("float32")


def reserve(arenas, window, rows):
    """Have so many rows in use."""
    arenas.see_layouts()
    arenas.rows["used"][arenas._windows.windows[window].arena] = rows
    arenas.make_room()


def test_rows_survive_growth_and_windows_follow():
    windows = Windows()
    plain = windows.plain((3,), F32)
    last = windows.look((3,), F32, lambda x: x[:, 2])
    arenas = Arenas(windows, BufferPool())
    reserve(arenas, plain, 10)
    arenas.array(plain)[:10] = np.arange(30).reshape(10, 3)
    before = arenas.array(last)[:10].copy()
    reserve(arenas, plain, 100_000)
    np.testing.assert_array_equal(arenas.array(plain)[:10], np.arange(30).reshape(10, 3))
    np.testing.assert_array_equal(arenas.array(last)[:10], before)
    assert np.shares_memory(arenas.array(last), arenas.array(plain))
    assert arenas.rows["room"][0] == len(arenas.array(plain)) >= 100_000
    assert arenas.bytes == 100_000 * 3 * 4


def test_release_gives_buffers_back():
    pool = BufferPool()
    windows = Windows()
    plain = windows.plain((3,), F32)
    arenas = Arenas(windows, pool)
    reserve(arenas, plain, 1000)
    flat = arenas.flats[0]
    arenas.release()
    assert arenas.bytes == 0
    assert pool.acquire(3000, F32) is flat
