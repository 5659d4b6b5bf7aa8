"""The emulated GPU computes what a GPU would, and refuses what a GPU would refuse."""

import ctypes
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.kernels.cuda.backend import COMMON, text_of
from edbatch.kernels.cuda.driver import Driver
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


def test_no_name_is_one_of_nvidias():
    """CuPy, in the same process, would call what it finds under them."""
    listed = subprocess.run(["nm", "-D", "--defined-only", libraries.core_path()], capture_output=True, text=True)
    names = re.findall(r" T (\w+)", listed.stdout)
    assert {"emulated_launch", "emulated_gemm", "emulated_gemm_strided"} <= set(names)
    assert not [name for name in names if re.match("cu[A-Zbd]|nv", name)]
    with pytest.raises(AttributeError):  # nor is a name seen by others
        ctypes.CDLL(None)["emulated_launch"]


def test_it_has_all_that_a_driver_has(driver):
    methods = {name for name, x in vars(Driver).items() if callable(x) and not name.startswith("_")}
    assert {"load", "empty", "capture"} < methods
    assert all(hasattr(driver, name) for name in methods | set(Driver.__annotations__))


@pytest.mark.parametrize("n", [0, 1, 63, 1000])
def test_barriers_and_shared_memory(driver, kernels, n):
    x, out = np.arange(n), np.zeros(5, np.int64)
    for _ in range(2):  # in both directions
        driver.run(kernels["total"], (5,), (64,), n, x, out)
        assert out.sum() == x.sum()
        assert out[0] == x.reshape(-1)[[i for i in range(n) if i % 320 < 64]].sum()


def test_shuffles(driver, kernels):
    x = np.random.default_rng(0).normal(size=128)
    wanted = x[np.arange(128) ^ 17]
    driver.run(kernels["turn"], (1,), (32, 2, 2), x)
    np.testing.assert_array_equal(x, wanted)


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


def test_unknown_handles_are_refused(driver, kernels):
    _, parameters = parameters_of((0, 0, None))
    sizes = (1, 1, 1, 1, 1, 1, 0)
    assert core().emulated_launch(kernels["increase"] + 8, *sizes, driver.stream, parameters, None) == 400
    assert core().emulated_launch(kernels["increase"], *sizes, None, parameters, None) == 400


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


def test_source_that_is_wrong_is_an_error(driver):
    with pytest.raises(RuntimeError, match="undeclared"):
        driver.load('extern "C" __global__ void f(long long n) { undeclared = n; }', ["f"])
    with pytest.raises(RuntimeError, match="parameters have 8 bytes"):
        driver.load('extern "C" __global__ void f(int) {}', ["f"])
    with pytest.raises(RuntimeError, match="4,096 bytes"):
        driver.load(f'extern "C" __global__ void f({", ".join(["long long"] * 513)}) {{}}', ["f"])


def written(name, number):
    """A kernel as those that are generated look: numbers of the first place become this one."""
    return f"""
extern "C" __global__ void {name}(const long long n, const Given<1> given) {{
    ((long long*)given.v[0])[0] = {number} + n;
}}
"""


Given = ctypes.c_longlong * 1


def test_kernels_that_are_compiled_together(driver):
    """They do nothing before; and hold from then on for those who had asked for them."""
    x = driver.xp.zeros(1, np.int64)
    given = Given(x.ctypes.data)
    with driver.together():
        handles = [driver.load(text_of(COMMON) + written(name, at), [name])[0] for at, name in enumerate("ab")]
        driver.run(handles[1], (1,), (1,), 5, given)
        assert driver.launches == x.get() == 0
    for at, handle in enumerate(handles):
        driver.run(handle, (1,), (1,), 5, given)
        assert x.get() == 5 + at


def test_a_generated_kernel_is_compiled_once_whatever_its_name(driver, monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "folder", lambda: tmp_path)
    x = driver.xp.zeros(1, np.int64)
    driver.load(text_of(COMMON) + written("one", 7) + written("two", 8), ["one", "two"])
    monkeypatch.setattr(libraries, "built", None)
    (handle,) = driver.load(text_of(COMMON) + written("three", 8), ["three"])
    driver.run(handle, (1,), (1,), 0, Given(x.ctypes.data))
    assert x.get() == 8


def test_recordings_run_when_they_are_launched(driver, kernels):
    x = driver.empty(3, np.int64)
    driver.upload(np.zeros(3, np.int64), x)
    with driver.capture() as recording:
        driver.run(kernels["increase"], (1,), (1,), 3, 5, x, stream=recording.stream)
        driver.run(kernels["increase"], (1,), (1,), 2, 7, x, stream=recording.stream)
        with pytest.raises(AssertionError, match="CUDA error 900"):  # it would run now, and never again
            driver.run(kernels["increase"], (1,), (1,), 3, 1, x)
        with pytest.raises(AssertionError, match="the host waited while work is recorded"):
            driver.synchronize()
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
    driver.synchronize()
    driver.run(kernels["increase"], (1,), (1,), 3, 1, y)
    with pytest.raises(AssertionError, match="beyond an array of 16 bytes"):
        driver.synchronize()
    assert bool(reports()) == libraries.checks


def test_uploads_are_copies_of_equal_size(driver):
    host, device = np.arange(6, dtype=np.float32), driver.empty(6, np.float32)
    driver.upload(host, device.reshape(2, 3))
    host[:] = 0
    back = driver.download(device)
    device[:] = 1
    assert back.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(AssertionError, match="20 bytes for 24"):
        driver.upload(host[:5], device)


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


@given(
    st.tuples(*[st.integers(0, 9)] * 3), st.tuples(st.booleans(), st.booleans()), st.tuples(*[st.integers(0, 3)] * 3),
    st.integers(0, 4), st.sampled_from([np.float32, np.float64]), st.sampled_from([0.0, 1.0, -0.5]), st.booleans(),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_products_are_those_of_numpy(sizes, turned, rooms, count, dtype, beta, strided, seed):
    """By columns: NumPy sees each matrix turned."""
    driver, random = EmulatedDriver(), np.random.default_rng(seed)
    m, n, k = sizes
    count = count if strided else 1
    stored = [(k, m) if not turned[0] else (m, k), (n, k) if not turned[1] else (k, n), (n, m)]
    arrays = [
        random.normal(size=(max(count, 1), rows + 1, columns + room + 1)).astype(dtype)
        for (rows, columns), room in zip(stored, rooms, strict=True)
    ]
    a, b, c = (array[:count, :rows, :columns] for array, (rows, columns) in zip(arrays, stored, strict=True))
    if beta == 0:
        c[:] = np.nan  # is not read
    wide_a, wide_b = (x.astype(np.float64).swapaxes(1, 2) for x in (a, b))
    wide_a, wide_b = (x.swapaxes(1, 2) if turn else x for x, turn in zip((wide_a, wide_b), turned, strict=True))
    wanted = arrays[2].astype(np.float64)
    wanted[:count, :n, :m] = (3 * wide_a @ wide_b).swapaxes(1, 2) + (beta * c if beta else 0)
    status = call(
        driver, *arrays, turned=turned, sizes=sizes, distances=[array.shape[2] for array in arrays],
        strides=[array[0].size for array in arrays] if strided else None, alpha=3.0, beta=beta, count=count,
    )  # fmt: skip
    assert status == 0
    assert driver.products == 1
    np.testing.assert_allclose(arrays[2], wanted, rtol=1e-6 if dtype == np.float32 else 1e-14, atol=1e-6)


@pytest.mark.parametrize(("compute", "bits"), [(68, 24), (69, 24), (77, 11), (75, 8)])
def test_fast_products_round_their_operands(driver, compute, bits):
    for x in np.random.default_rng(0).normal(size=20).astype(np.float32):
        a, b, c = np.array([[x]]), np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
        assert call(driver, a, b, c, turned=(0, 0), sizes=(1, 1, 1), distances=(1, 1, 1), compute=compute) == 0
        mantissa, exponent = np.frexp(np.float64(x))
        assert c[0, 0] == np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


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
