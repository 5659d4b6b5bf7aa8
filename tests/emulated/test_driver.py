"""The emulated GPU computes what a GPU would, and refuses what a GPU would refuse."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from edbatch.kernels.cuda.cupy_driver import CuPyDriver
from tests.emulated import libraries
from tests.emulated.driver import EmulatedDriver, parameters_of
from tests.emulated.libraries import core, reports, with_cpp

pytestmark = with_cpp

SOURCE = """
// What a block's threads count together: blocks of 64 threads.
extern "C" __global__ void total(long long n, const long long* x, long long* out) {
    __shared__ long long parts[64];
    parts[threadIdx.x] = 0;
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        parts[threadIdx.x] += x[i];
    }
    for (unsigned half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}

extern "C" __global__ void turn(double* x) {
    double* mine = x + threadIdx.z * 64 + threadIdx.y * 32 + threadIdx.x;
    *mine = __shfl_xor_sync(0xffffffffu, __shfl_xor_sync(0xffffffffu, *mine, 1), 16);
}

extern "C" __global__ void barrier_for_some(long long some) {
    if (threadIdx.x < some) __syncthreads();
}

extern "C" __global__ void barriers_apart(long long some) {
    if (threadIdx.x < some) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void last(long long* out) {
    __shared__ long long last;
    last = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = last;
}

extern "C" __global__ void increase(long long n, long long by, long long* x) {
    for (long long i = 0; i < n; i++) x[i] += by;
}
"""
NAMES = ["total", "turn", "barrier_for_some", "barriers_apart", "last", "increase"]


@pytest.fixture
def driver():
    return EmulatedDriver()


@pytest.fixture
def kernels(driver):
    return dict(zip(NAMES, driver.load(SOURCE, NAMES), strict=True))


def test_it_has_all_that_a_driver_has(driver):
    methods = {name for name, x in vars(CuPyDriver).items() if callable(x) and not name.startswith("_")}
    assert {"load", "empty", "capture"} < methods
    attributes = {"name", "xp", "processors", "stream", "blas", "launch", "gemm", "gemm_strided"}
    assert all(hasattr(driver, name) for name in methods | attributes)


@pytest.mark.parametrize(
    ("name", "some", "block"), [("barrier_for_some", 3, 64), ("barriers_apart", 3, 64), ("turn", 0, 33)]
)
def test_threads_that_wait_for_ever_are_an_error(driver, kernels, name, some, block):
    x = np.zeros(64)
    with pytest.raises(AssertionError, match="CUDA error 719"):
        driver.run(kernels[name], (1,), (block,), *((x,) if name == "turn" else (some,)))
    (found,) = reports()
    assert "waits for others that never come, at line" in found
    driver.run(kernels["barrier_for_some"], (1,), (64,), 64)  # and it goes on


def test_launches_run_threads_in_several_orders(driver, kernels):
    """What depends on it has no barrier where it needs one."""
    seen = set()
    for _ in range(3):
        out = np.zeros(64, np.int64)
        driver.run(kernels["last"], (1,), (64,), out)
        assert len(set(out)) == 1
        seen.add(out[0])
    assert seen > {0, 63}
    assert all("has a race" in found for found in reports())


@pytest.mark.parametrize(
    ("sizes", "status"),
    [
        ((1, 1, 1, 1, 1, 1, 0), 0),
        ((0, 1, 1, 1, 1, 1, 0), 1),
        ((1, 1, 1, 1, 0, 1, 0), 1),
        ((1, 65536, 1, 1, 1, 1, 0), 1),
        ((1, 1, 1, 64, 17, 1, 0), 1),
        ((1, 1, 1, 1, 1, 65, 0), 1),
        ((1, 1, 1, 1, 1, 1, 16), 1),
    ],
)
def test_launches_that_cuda_refuses(driver, kernels, sizes, status):
    _, parameters = parameters_of((np.int64(0), np.int64(0), None))
    assert core().emulated_launch(kernels["increase"], *sizes, driver.stream, parameters, None) == status
    assert driver.launches == (status == 0)


def test_a_thread_needs_the_context_of_the_device(kernels):
    """It has none at first; on device 0 that stays which a block has made current, as with CuPy."""
    _, parameters = parameters_of((0, 0, None))
    first, second = EmulatedDriver(), EmulatedDriver(1)

    def status(driver):
        return core().emulated_launch(kernels["increase"], 1, 1, 1, 1, 1, 1, 0, driver.stream, parameters, None)

    def work():
        found = [status(first)]
        for driver in (first, second):
            with driver.active():
                found += [status(first), status(second)]
        return [*found, status(first), status(second)]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == [201, 0, 400, 400, 0, 0, 400]


def test_recordings_run_when_they_are_launched(driver, kernels):
    x = driver.empty(3, np.int64)
    driver.upload(np.zeros(3, np.int64), x)
    with driver.capture() as recording:
        driver.run(kernels["increase"], (1,), (1,), 3, 5, x, stream=recording.stream)
        driver.run(kernels["increase"], (1,), (1,), 2, 7, x, stream=recording.stream)
        with pytest.raises(AssertionError, match="CUDA error 900"):  # it would run now, and never again
            driver.run(kernels["increase"], (1,), (1,), 3, 1, x)
        with pytest.raises(AssertionError, match="an array was downloaded while work is recorded"):
            driver.download(x)
    assert (driver.launches, driver.recorded, recording.entries) == (0, 2, 2)
    assert driver.download(x).tolist() == [0, 0, 0]
    recording.launch()
    recording.launch()
    assert driver.download(x).tolist() == [24, 24, 10]
    driver.run(kernels["increase"], (1,), (1,), 3, 1, x)
    assert driver.download(x).tolist() == [25, 25, 11]
    assert (driver.launches, driver.replayed, driver.uploads, driver.downloads) == (1, 2, 1, 3)


def test_memory_is_nan_and_has_a_fence(driver, kernels):
    x, y = driver.empty(3, np.float32), driver.empty(2, np.int64)
    assert np.isnan(x).all()
    assert y.tolist() == [-1, -1]
    assert driver.address(x) % 256 == driver.address(y) % 256 == 0
    assert driver.allocations == 2
    driver.check_memory()
    driver.run(kernels["increase"], (1,), (1,), 3, 1, y)
    with pytest.raises(AssertionError, match="beyond an array of 16 bytes"):
        driver.check_memory()
    assert bool(reports()) == libraries.checks


def call(driver, *arrays, turned, sizes, distances, strides=None, alpha=1.0, beta=0.0, count=1, **changes):
    """cublasGemmEx, or with strides cublasGemmStridedBatchedEx, on matrices a, b and c; its status."""
    integer, long, pointer = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
    double = arrays[0].dtype == np.float64
    number = ctypes.c_double if double else ctypes.c_float
    given = {
        "handle": driver.blas, "mode": [int(x) for x in turned], "kind": int(double), "compute": 70 if double else 68,
        "algorithm": -1,
    } | changes  # fmt: skip
    kinds = [int(double), given["kind"], int(double)]
    a, b, c = (
        [pointer(array.ctypes.data), integer(kind), integer(distance), *([long(strides[at])] if strides else [])]
        for at, (array, kind, distance) in enumerate(zip(arrays, kinds, distances, strict=True))
    )
    alpha, beta = number(alpha), number(beta)
    parameters = [
        pointer(given["handle"]), *map(integer, given["mode"]), *map(integer, sizes),
        pointer(ctypes.addressof(alpha)), *a, *b, pointer(ctypes.addressof(beta)), *c,
        *([integer(count)] if strides else []), integer(given["compute"]), integer(given["algorithm"]),
    ]  # fmt: skip
    kind = ctypes.CFUNCTYPE(integer, *map(type, parameters))
    return kind(driver.gemm_strided if strides else driver.gemm)(*parameters)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0),
        ({"compute": 70}, 7),  # that of float64
        ({"compute": 0}, 7),  # that of cuBLAS 10
        ({"kind": 2}, 15),
        ({"mode": [78, 84]}, 7),  # "N" and "T", as of the other BLAS
        ({"algorithm": 0}, 7),
        ({"handle": 0}, 1),
        ({"sizes": (-1, 3, 4)}, 7),
        ({"distances": (1, 4, 2)}, 7),
        ({"distances": (2, 3, 2)}, 7),
        ({"distances": (2, 4, 1)}, 7),
    ],
)
def test_products_that_cublas_refuses(driver, change, status):
    a, b, c = np.ones((4, 2), np.float32), np.ones((3, 4), np.float32), np.zeros((3, 2), np.float32)
    given = {"turned": (0, 0), "sizes": (2, 3, 4), "distances": (2, 4, 2)} | change
    assert call(driver, a, b, c, **given) == status
    assert c[0, 0] == (0 if status else 4)


def test_products_are_recorded_with_their_factors(driver):
    a, b, c = np.full((1, 1), 2, np.float32), np.full((1, 1), 3, np.float32), np.full((1, 1), 1, np.float32)
    with driver.capture() as recording:
        given = {"turned": (0, 0), "sizes": (1, 1, 1), "distances": (1, 1, 1), "beta": 1.0}
        assert call(driver, a, b, c, **given, handle=recording.blas) == 0
        assert call(driver, a, b, c, **given) == 13
    assert c[0, 0] == 1
    recording.launch()
    recording.launch()
    assert c[0, 0] == 13
    assert (driver.products, recording.entries) == (0, 1)
