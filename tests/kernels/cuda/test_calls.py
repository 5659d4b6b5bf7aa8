"""Calls by address: products against NumPy's, and errors that are said once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.kernels.cuda import calls, enqueue
from edbatch.kernels.cuda.backend import CudaBackend
from edbatch.kernels.cuda.calls import PRECISIONS, Gpu
from edbatch.kernels.cuda.geometry import Grid
from edbatch.kernels.tables import Listed, Matrices, Matrix, Rows, Sizes
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp

sizes = st.integers(1, 6)
seeds = st.integers(0, 10**6)


dtypes = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])


def tolerance(dtype):
    return 1e-5 if dtype == np.float32 else 1e-13


def placed(backend, dtype, *arrays):
    there = [backend.from_host(array.astype(dtype).reshape(-1), "C") for array in arrays]
    return there, [backend.address(x) for x in there]


@given(sizes, sizes, sizes, st.booleans(), st.booleans(), st.integers(0, 2), dtypes, seeds)
def test_products(cuda, m, n, k, transposed, add, more, dtype, seed):
    """Of rows at a distance, with a matrix stored either way."""
    random, backend = np.random.default_rng(seed), cuda.backend
    x, out = random.normal(size=(m, k + more)), random.normal(size=(m, n + more))
    w = random.normal(size=(n, k + more) if transposed else (k, n + more))
    there, (at_x, at_w, at_out) = placed(backend, dtype, x, w, out)
    matrices = Matrix(at_x, k + more, 0), Matrix(at_w, w.shape[1], int(transposed)), Matrix(at_out, n + more, 0)
    calls.multiply(backend._gpu, dtype.itemsize, Sizes(m, n, k), *matrices, int(add))
    calls.check(backend._gpu)
    want = out.copy()
    want[:, :n] = x[:, :k] @ (w[:, :k].T if transposed else w[:, :n]) + add * out[:, :n]
    np.testing.assert_allclose(backend.to_host(there[2]).reshape(out.shape), want, atol=tolerance(dtype))


@given(st.integers(1, 4), sizes, sizes, sizes, st.sampled_from(["nn", "nt", "tn", "tt"]), dtypes, seeds)
def test_products_each(cuda, count, m, n, k, turned, dtype, seed):
    """A product per call, of which one operand may be shared (a distance of 0)."""
    random, backend = np.random.default_rng(seed), cuda.backend
    a = random.normal(size=(count, *((k, m) if turned[0] == "t" else (m, k))))
    b = random.normal(size=((k, n) if turned[1] == "n" else (n, k)))
    there, (at_a, at_b, at_out) = placed(backend, dtype, a, b, np.zeros((count, m, n)))
    left = Matrices(dtype.itemsize * m * k, Matrix(at_a, a.shape[2], int(turned[0] == "t")))
    right = Matrices(0, Matrix(at_b, b.shape[1], int(turned[1] == "t")))
    out = Matrices(dtype.itemsize * m * n, Matrix(at_out, n, 0))
    calls.multiply_each(backend._gpu, dtype.itemsize, count, Sizes(m, n, k), left, right, out)
    calls.check(backend._gpu)
    want = (a.transpose(0, 2, 1) if turned[0] == "t" else a) @ (b.T if turned[1] == "t" else b)
    np.testing.assert_allclose(backend.to_host(there[2]).reshape(want.shape), want, atol=tolerance(dtype))


@pytest.fixture
def backend():
    """On an emulated GPU of their own: others do not survive what is wrong."""
    return CudaBackend(EmulatedDriver())


def copy(backend):
    source, target = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    moves = np.empty((enqueue.MOVES + 1, enqueue.MOVE), np.int64)
    there, here = (Listed(Rows(x.ctypes.data, 16, 16), 0) for x in (source, target))
    enqueue.note(moves, 0, there, here, 1)
    enqueue.gather(backend._gpu, moves, 1)
    calls.check(backend._gpu)
    return target


@with_cpp
def test_a_launch_that_fails_is_said_once(backend):
    kernel, backend._gpu[Gpu.GATHER] = int(backend._gpu[Gpu.GATHER]), 12345
    with pytest.raises(eb.EdBatchError, match=r"^cuLaunchKernel failed with status 400$"):
        copy(backend)
    calls.check(backend._gpu)
    backend._gpu[Gpu.GATHER] = kernel
    np.testing.assert_array_equal(copy(backend), np.arange(4))


@with_cpp
def test_the_first_error_is_said(backend):
    x = np.zeros(4, np.float32).ctypes.data
    backend._gpu[Gpu.COMPUTE] = 99
    one = Matrix(x, 1, 0)
    calls.multiply(backend._gpu, 4, Sizes(1, 1, 1), one, one, one, 0)
    calls.multiply_each(backend._gpu, 4, 1, Sizes(1, 1, 1), *(Matrices(4, one),) * 3)
    calls.launch(backend._gpu, 12345, Grid(1, 1, 1, 1, 0), np.zeros(1, np.int64), 1)
    with pytest.raises(eb.EdBatchError, match=r"^cuBLAS failed with status 7$"):
        calls.check(backend._gpu)
    calls.check(backend._gpu)


@pytest.mark.parametrize(("precision", "bits"), [("float32", 23), ("tf32", 10), ("bf16", 7)])
def test_precisions(cuda, precision, bits):
    """A factor of 1 and a bit more; what is lost is no more than was asked for."""
    assert set(PRECISIONS) == {"float32", "tf32", "bf16"}
    backend = cuda.backend
    there, (at_x, at_w, at_out) = placed(backend, np.float32, np.array([1 + 2.0**-bits]), np.ones(1), np.zeros(1))
    with backend.computing(True, precision, 0):
        calls.multiply(backend._gpu, 4, Sizes(1, 1, 1), *(Matrix(at, 1, 0) for at in (at_x, at_w, at_out)), 0)
    assert backend.to_host(there[2])[0] == 1 + 2.0**-bits
