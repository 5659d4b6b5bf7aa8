import numpy as np
import pytest

from edbatch.memory.plan.pool import BufferPool
from edbatch.runtime.kept_buffer import MOST_BYTES, KeptBuffer

FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


@pytest.fixture
def pool():
    return BufferPool()


def test_it_is_had_again_as_long_as_it_will_do(pool):
    kept = KeptBuffer(pool)
    address, array = kept.take(1000, FLOAT)
    assert (len(array), address) == (1024, pool.address(array))
    assert kept.take(1024, FLOAT)[1] is array
    for entries, dtype in ((1025, FLOAT), (10, DOUBLE)):
        _, other = kept.take(entries, dtype)
        assert other.dtype == dtype
        assert len(other) >= entries
        assert pool.kept > 0  # what was there before has gone back
    assert pool.acquire(1000, FLOAT) is array


def test_others_get_what_is_given_back_once(pool):
    kept = KeptBuffer(pool)
    _, array = kept.take(10, FLOAT)
    kept.give_back()
    kept.give_back()
    assert pool.acquire(10, FLOAT) is array
    assert pool.acquire(10, FLOAT) is not array
    assert kept.take(10, FLOAT)[1] is not array


def test_only_what_is_large_goes_back(pool):
    small, large = KeptBuffer(pool), KeptBuffer(pool)
    _, array = small.take(10, FLOAT)
    large.take(MOST_BYTES // 4 + 1, FLOAT)
    small.shrink()
    large.shrink()
    assert small.take(10, FLOAT)[1] is array
    assert pool.kept > MOST_BYTES
