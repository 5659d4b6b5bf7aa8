"""The functions of `CudaBackend` against those of the same names that the CPU has."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.runtime.type_table import rows_to_host

CPU = NumPyBackend()
seeds = st.integers(0, 10**6)
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
dtypes = st.sampled_from([np.float32, np.float64])


def both(cuda, function, *arrays):
    """What `function(backend, *arrays of the backend)` returns on either, on the host."""
    found = []
    for backend in (cuda.backend, CPU):
        with backend.active():
            got = function(backend, *(backend.from_host(x.copy(), "C") for x in arrays))
            found.append(np.array(backend.to_host(got)))
    return found


def same(cuda, function, *arrays, **tolerance):
    mine, theirs = both(cuda, function, *arrays)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(mine, theirs, **({"rtol": 0} | tolerance))


@given(shapes, dtypes, st.sampled_from(["C", "F"]), seeds)
def test_there_and_back(cuda, shape, dtype, order, seed):
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    for host in (x, x.T):
        there = cuda.backend.from_host(host, order)
        assert there.flags.c_contiguous if order == "C" else there.flags.f_contiguous
        back = cuda.backend.to_host(there)
        assert isinstance(back, np.ndarray)
        assert back.dtype == dtype
        np.testing.assert_array_equal(back, host)
        there[...] = 7  # neither shares memory
        assert (back == host).all()


@given(st.integers(1, 9), st.booleans(), st.booleans(), seeds)
def test_rows_to_the_host(cuda, n, consecutive, turned, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(12, 2, 3)).astype(np.float32)
    rows = np.arange(2, 2 + n) if consecutive else random.integers(0, 12, n)
    there = cuda.backend.from_host(x, "C")
    want = x
    if turned:
        there, want = there[:, ::-1, 1:], x[:, ::-1, 1:]
    np.testing.assert_array_equal(rows_to_host(there, rows.astype(np.int32), cuda.backend), want[rows])
