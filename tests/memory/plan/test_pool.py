from threading import Thread

import numpy as np

from edbatch.memory.plan.pool import BufferPool
from edbatch.testing import poisoned_memory

F32 = np.dtype("float32")


def test_a_released_buffer_comes_back_for_its_size_and_dtype_only():
    pool = BufferPool()
    buffer = pool.acquire(2000, F32)
    pool.release(buffer)
    assert pool.acquire(2000, np.dtype("float64")) is not buffer
    assert pool.acquire(4000, F32) is not buffer
    assert pool.acquire(1500, F32) is buffer
    assert pool.acquire(1500, F32) is not buffer


def test_no_more_is_kept_than_the_limit():
    pool = BufferPool(limit=3 * 4096)
    buffers = [pool.acquire(1024, F32) for _ in range(5)]
    for buffer in buffers:
        pool.release(buffer)
    again = [pool.acquire(1024, F32) for _ in range(5)]
    assert sum(any(new is old for old in buffers) for new in again) == 3


def test_a_buffer_may_come_back_while_another_does():
    """As when the garbage collector, which may run anywhere, ends a graph."""

    class Graph:
        def __del__(self):
            pool.release(buffers.pop())

    def address(array):
        graphs.clear()
        return array.ctypes.data

    pool = BufferPool(address=address)
    buffers = [pool.acquire(1024, F32) for _ in range(2)]
    graphs = [Graph()]
    thread = Thread(target=pool.release, args=(buffers.pop(),), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert not buffers


def test_free_memory_is_full_of_nan():
    """Inside the block: what is handed out, and what is given back."""
    pool = BufferPool()
    with poisoned_memory():
        buffer = pool.acquire(1000, np.dtype("float32"))
        assert np.isnan(buffer).all()
        buffer.fill(1)
        pool.release(buffer)
        assert np.isnan(buffer).all()
    buffer.fill(1)
    assert pool.acquire(1000, np.dtype("float32")) is buffer
    assert (buffer == 1).all()
