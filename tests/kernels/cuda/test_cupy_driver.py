"""CuPy's driver: with a fake CuPy that checks what it is asked for, and, where there is a GPU, with the true one."""

import ctypes
import threading

import numpy as np
import pytest

from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import cublas, installed
from edbatch.kernels.cuda.cupy_driver import CuPyDriver, open_driver
from tests.kernels.cuda.fake_cupy import GEMM, Array, FakeBlas, FakeCupy

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)


@pytest.fixture
def blas():
    return FakeBlas()


@pytest.fixture
def fake(monkeypatch, blas):
    monkeypatch.setattr(installed, "cuda_driver", lambda: type("libcuda", (), {"cuLaunchKernel": LAUNCH}))
    monkeypatch.setattr(cublas, "loaded", lambda major: {13: blas}[major])
    return CuPyDriver(FakeCupy(gpus=2), 1)


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def test_attributes(fake, blas):
    assert (fake.name, fake.processors, fake.stream, fake.blas) == ("cuda:1", 132, 1234, 77)
    assert fake.launch == address(LAUNCH)
    assert (fake.gemm, fake.gemm_strided) == (address(blas.cublasGemmEx), address(blas.cublasGemmStridedBatchedEx))
    assert fake.xp.current == [(0, None)]  # as it was before
    given = [call[2:] for call in blas.calls if call[0] == "cublasSetWorkspace_v2"]
    assert given == [(fake.address(fake._workspace), 32 << 20)] * 2  # there is one stream where products run
    assert [call[2] for call in blas.calls if call[0] == "cublasSetStream_v2"] == [1234, 5678]


def test_active_nests_in_all_threads(fake):
    def use():
        with fake.active():
            inside.append(fake.xp.current[-1])
            with fake.active():
                inside.append(fake.xp.current[-1])
            inside.append(fake.xp.current[-1])

    inside = []
    use()
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert inside == [(1, fake._stream)] * 6
    assert fake.xp.current == [(0, None)]
    # Set each time, also where it is CuPy's current one already: a new thread has no context.
    assert fake.xp.set[-4:] == [1] * 4


def test_a_forked_process_is_told(fake, monkeypatch):
    """CUDA's own error there says nothing of a fork."""
    monkeypatch.setattr("os.getpid", lambda: -1)
    for use in (lambda: fake.empty(1, np.float32), lambda: fake.active().__enter__(), lambda: fake.load("", [])):
        with pytest.raises(EdBatchError, match=r"^cuda:1: this process was forked from one that uses the GPU"):
            use()


def test_load_tells_what_is_wrong(fake):
    with pytest.raises(EdBatchError, match=r"cuda:1: a CUDA kernel does not compile:\nkern.cu\(1\): error: expected"):
        fake.load("error", ["kernel"])
    with pytest.raises(EdBatchError, match=r"cuda:1: not all kernels of first, other are there: CUDA_ERROR_NOT_FOUND"):
        fake.load("first", ["first", "other"])
    with pytest.raises(EdBatchError, match=r"the folder of headers of CUDA 13 cannot be found \(Failed to find CUDA h"):
        fake.load("headers", ["kernel"])
    for source, message in (("memory", "CUDA_ERROR_OUT_OF_MEMORY"), ("builtins", "NVRTC_ERROR_BUILTIN_OPERATION")):
        with pytest.raises(RuntimeError, match=message) as raised:
            fake.load(source, ["kernel"])
        assert not isinstance(raised.value, EdBatchError)
    assert fake.xp.current == [(0, None)]


def test_uploads_are_copies_on_the_stream(fake):
    target, host = fake.empty(4, np.float32), np.arange(4, dtype=np.float32)
    fake.upload(host, target)
    assert fake.xp.log == [("copy", 16), ("record", 1234)]
    host[:] = -1
    np.testing.assert_array_equal(fake.download(target), range(4))
    assert fake.xp.log[2:] == ["synchronize"]


def test_uploads_that_do_not_fit(fake):
    with pytest.raises(EdBatchError, match=r"cuda:1: 16 bytes cannot be copied to an array of 12 \(contiguous\)"):
        fake.upload(np.zeros(4, np.float32), fake.empty(3, np.float32))
    with pytest.raises(EdBatchError, match=r"an array of 16 \(not contiguous\)"):
        fake.upload(np.zeros(4, np.float32), Array(np.zeros(8, np.float32)[::2]))


def test_capture(fake):
    """Of a stream of its own, that does not block the default one: CUDA would forbid others to use that meanwhile."""
    with fake.capture() as recording:
        assert fake.xp.capturing == recording.stream == 5678 != fake.stream
        assert recording.blas == fake._recorded_blas
        assert fake.xp.current[-1] == (1, fake._stream)
        with pytest.raises(EdBatchError, match="can be launched once its block has ended"):
            recording.launch()
    assert fake.xp.capturing is None
    recording.launch()
    recording.launch()
    assert fake.xp.log == [("launch", 1234)] * 2


# ---- with a GPU

SCALE = """
extern "C" __global__ void scale(long long n, double factor, float* values) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        values[i] *= factor;
}
"""
LAUNCH_KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3
)  # cuLaunchKernel


@pytest.fixture
def gpu():
    return open_driver(0)


def enqueue_scale(gpu, kernel, n, factor, array, stream=None):
    given = [ctypes.c_longlong(n), ctypes.c_double(factor), ctypes.c_void_p(gpu.address(array))]
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in given))
    with gpu.active():
        assert LAUNCH_KERNEL(gpu.launch)(kernel, 4, 1, 1, 64, 1, 1, 0, stream or gpu.stream, places, None) == 0


@pytest.mark.gpu
def test_gpu_upload_launch_download(gpu):
    (kernel,) = gpu.load(SCALE, ["scale"])
    host = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    expected, array = host * np.float32(3), gpu.empty(1000, np.dtype(np.float32))
    assert gpu.address(array) % 256 == 0
    gpu.upload(host, array)
    host[:] = 0
    enqueue_scale(gpu, kernel, 1000, 3.0, array)
    np.testing.assert_array_equal(gpu.download(array), expected)


@pytest.mark.gpu
def test_gpu_capture(gpu):
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


@pytest.mark.gpu
def test_gpu_matrix_product(gpu):
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
