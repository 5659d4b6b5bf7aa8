"""CuPy's driver, on a GPU; on one that is faked, there is more (tests/cuda_fake)."""

import ctypes

import numpy as np
import pytest

from edbatch.kernels.cuda.cupy_driver import open_driver

pytestmark = pytest.mark.gpu

SCALE = """
extern "C" __global__ void scale(long long n, double factor, float* values) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        values[i] *= factor;
}
"""
LAUNCH_KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3
)  # cuLaunchKernel


GEMM = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_int,) * 5, ctypes.c_void_p,
    *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int) * 2, ctypes.c_void_p,
    ctypes.c_void_p, *(ctypes.c_int,) * 4,
)  # fmt: skip  # cublasGemmEx


@pytest.fixture
def gpu():
    return open_driver(0)


def enqueue_scale(gpu, kernel, n, factor, array, stream=None):
    given = [ctypes.c_longlong(n), ctypes.c_double(factor), ctypes.c_void_p(gpu.address(array))]
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in given))
    with gpu.active():
        assert LAUNCH_KERNEL(gpu.launch)(kernel, 4, 1, 1, 64, 1, 1, 0, stream or gpu.stream, places, None) == 0


def test_upload_launch_download(gpu):
    (kernel,) = gpu.load(SCALE, ["scale"])
    host = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    expected, array = host * np.float32(3), gpu.empty(1000, np.dtype(np.float32))
    assert gpu.address(array) % 256 == 0
    gpu.upload(host, array)
    host[:] = 0
    enqueue_scale(gpu, kernel, 1000, 3.0, array)
    np.testing.assert_array_equal(gpu.download(array), expected)


def test_capture(gpu):
    (kernel,) = gpu.load(SCALE, ["scale"])
    array = gpu.empty(10, np.dtype(np.float32))
    gpu.upload(np.ones(10, np.float32), array)
    enqueue_scale(gpu, kernel, 10, 2.0, array)
    with gpu.capture() as recording:
        enqueue_scale(gpu, kernel, 10, 3.0, array, recording.stream)
    np.testing.assert_array_equal(gpu.download(array), np.full(10, 2))
    recording.launch()
    recording.launch()
    np.testing.assert_array_equal(gpu.download(array), np.full(10, 18))


def test_matrix_product(gpu):
    """In full float32: TF32 would be off by 1e-3."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(64, 64)).astype(np.float32) for _ in range(2))
    x, y, out = (gpu.empty(64 * 64, np.dtype(np.float32)) for _ in range(3))
    gpu.upload(a, x)
    gpu.upload(b, y)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    with gpu.active():
        status = GEMM(gpu.gemm)(
            gpu.blas, 0, 0, 64, 64, 64, ctypes.addressof(one), gpu.address(y), 0, 64, gpu.address(x), 0, 64,
            ctypes.addressof(zero), gpu.address(out), 0, 64, 68, -1,
        )  # fmt: skip  # CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
    assert status == 0
    product = a.astype(np.float64) @ b
    np.testing.assert_allclose(gpu.download(out).reshape(64, 64), product, rtol=1e-4, atol=1e-5)
