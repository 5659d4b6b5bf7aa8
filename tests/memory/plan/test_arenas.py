import numpy as np

from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.pool import BufferPool
from edbatch.memory.plan.windows import Windows

F32 = np.dtype("float32")


def test_rows_survive_growth_and_windows_follow():
    windows = Windows()
    plain = windows.plain((3,), F32)
    last = windows.look((3,), F32, lambda x: x[:, 2])
    arenas = Arenas(windows, BufferPool())
    arenas.reserve(plain, 10)
    arenas.array(plain)[:10] = np.arange(30).reshape(10, 3)
    before = arenas.array(last)[:10].copy()
    arenas.reserve(plain, 100_000)
    np.testing.assert_array_equal(arenas.array(plain)[:10], np.arange(30).reshape(10, 3))
    np.testing.assert_array_equal(arenas.array(last)[:10], before)
    assert np.shares_memory(arenas.array(last), arenas.array(plain))
    assert arenas.rows()[plain] == 100_000
    assert arenas.rows()[last] == 0
    assert arenas.bytes == 100_000 * 3 * 4


def test_layouts_added_by_another_graph_later():
    windows = Windows()
    arenas = Arenas(windows, BufferPool())
    first = windows.plain((2,), F32)
    arenas.reserve(first, 1)
    second = windows.plain((5,), F32)
    assert arenas.rows().tolist() == [1, 0]
    arenas.reserve(second, 4)
    assert arenas.array(second)[:4].shape == (4, 5)
    assert arenas.addresses().tolist() == [(arena.flat.ctypes.data, 4 * arena.width) for arena in arenas.arenas]
    assert arenas.arena(second).width == 5


def test_release_gives_buffers_back():
    pool = BufferPool()
    windows = Windows()
    plain = windows.plain((3,), F32)
    arenas = Arenas(windows, pool)
    arenas.reserve(plain, 1000)
    flat = arenas.arenas[0].flat
    arenas.release()
    assert arenas.bytes == 0
    assert pool.acquire(3000, F32) is flat
