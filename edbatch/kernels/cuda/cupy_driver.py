"""A GPU through CuPy: the only file that imports it, and only when a driver is opened.

CuPy owns memory, compiles and loads kernels, and runs rare ops. Kernels and matrix products are enqueued without it,
by address: of `cuLaunchKernel` in NVIDIA's driver, and of the same cuBLAS that CuPy has loaded.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from edbatch.base.context_stack import contextmanager, leaving
from edbatch.errors import EdBatchError
from edbatch.kernels.cuda import cublas, installed
from edbatch.kernels.cuda.pinned import Uploads

#: No product and sum become one instruction: what a derivative computes again is what the forward run computed, to the
#: last bit. CUDA's own functions say where they want one.
OPTIONS = ("--std=c++17", "--fmad=false")


_opening = Lock()


def open_driver(number: int) -> CuPyDriver:
    """The GPU of a number, counted as CUDA does from 0 on; the same driver, and so the same stream, each time.

    Raises:
        EdBatchError: CuPy, NVIDIA's driver or libraries, or a GPU of this number are not there.
    """
    with _opening:  # the cache alone would have two threads open two
        return _open(number)


@cache
def _open(number: int) -> CuPyDriver:
    device = f"cuda:{number}"
    version = installed.check_driver(device)
    try:
        import cupy
    except ImportError as error:
        raise installed.not_importable(device, version, error) from error
    installed.check_device(device, version, cupy, number)
    return CuPyDriver(cupy, number)


class CuPyDriver:
    """One GPU, and one stream on it that all work is enqueued on; the rest of the backend asks nothing else.

    Attributes:
        name: "cuda:0".
        xp: NumPy's API on arrays of the device.
        processors: how many multiprocessors it has.
        stream: CUDA's handle, as all handles and addresses an integer.
        launch, gemm, gemm_strided: addresses of `cuLaunchKernel`, `cublasGemmEx` and `cublasGemmStridedBatchedEx`.
        blas: handle of cuBLAS, bound to the stream, with a workspace of its own.
    """

    def __init__(self, cupy: Any, number: int):
        self.name = f"cuda:{number}"
        self.xp = cupy
        runtime = cupy.cuda.runtime
        blas = self._libraries(runtime.runtimeGetVersion() // 1000)
        self.launch = _address(installed.cuda_driver().cuLaunchKernel)
        self.gemm, self.gemm_strided = _address(blas.cublasGemmEx), _address(blas.cublasGemmStridedBatchedEx)
        self._modules: list[Any] = []  # a kernel's handle is valid as long as its module is loaded

        device = cupy.cuda.Device(number)
        self.processors = runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, number)
        with device:
            # One that CUDA keeps in order with its default stream, on which a user's own CuPy code runs: what that does
            # to a parameter or a gradient comes between our kernels as it was written. Nobody waits for that.
            self._stream = cupy.cuda.Stream(non_blocking=False)
            # While such a stream is captured, nobody in the process may use the default one: recordings have another.
            self._recorded = cupy.cuda.Stream(non_blocking=True)
        self.stream = self._stream.ptr
        self._number, self._process = number, os.getpid()
        size = (32 if int(device.compute_capability[:-1]) >= 9 else 4) << 20  # NVIDIA recommends 32 MiB since Hopper
        self._workspace = self.empty(size, np.dtype(np.uint8))
        with self.active():
            self.blas, self._recorded_blas = (
                cublas.create(blas, stream.ptr, self.address(self._workspace), size)
                for stream in (self._stream, self._recorded)
            )
        self._uploads = Uploads(
            self._stream,
            allocate=lambda size: np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size),
            event=lambda: cupy.cuda.Event(disable_timing=True),
            copy=lambda to, begin, size: runtime.memcpyAsync(
                to, begin, size, runtime.memcpyHostToDevice, self._stream.ptr
            ),
        )

    def _libraries(self, major: int) -> ctypes.CDLL:
        """CuPy's cuBLAS. CuPy finds its libraries when they are first used; to fail early, it is asked for them."""
        cuda, part = self.xp.cuda, "cuBLAS"
        try:
            _ = cuda.cublas
            part = "NVRTC"
            cuda.nvrtc.getVersion()
        except (ImportError, RuntimeError) as error:
            raise installed.not_in_toolkit(self.name, self.xp, part, error) from error
        return cublas.loaded(major)

    def load(self, source: str, names: Sequence[str]) -> list[int]:
        """The handles of the kernels with these names, compiled by NVRTC, or found in CuPy's cache on disk.

        Raises:
            EdBatchError: the source, in CUDA C++, does not compile.
        """
        cupy = self.xp
        with self.active():
            try:
                module = cupy.RawModule(code=source, options=OPTIONS, backend="nvrtc").module
            except cupy.cuda.compiler.CompileException as error:
                raise EdBatchError(f"{self.name}: a CUDA kernel does not compile:\n{error}") from error
            except RuntimeError as error:
                if type(error) is not RuntimeError:  # of CUDA, or of NVRTC
                    raise
                # CuPy compiles nothing without the folder of CUDA's headers, even what includes none.
                raise installed.not_in_toolkit(self.name, cupy, "the folder of headers", error) from error
            self._modules.append(module)
            try:
                return [module.get_function(name).ptr for name in names]
            except cupy.cuda.driver.CUDADriverError as error:
                raise EdBatchError(f"{self.name}: not all kernels of {', '.join(names)} are there: {error}") from error

    def empty(self, entries: int | tuple[int, ...], dtype: np.dtype) -> Any:
        """An array of so many entries, unspecified; from CuPy's pool, whose blocks begin at multiples of 512 bytes."""
        with self.active():
            return self.xp.empty(entries, dtype)

    def address(self, array: Any) -> int:
        return array.data.ptr

    def array_at(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        cuda = self.xp.cuda
        memory = cuda.UnownedMemory(address, dtype.itemsize, None, self._number)  # entries may lie before the first
        return self.xp.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0), strides)

    def upload(self, host: np.ndarray, target: Any) -> None:
        """Enqueue a copy to the device, of as many contiguous bytes; waits for nothing, and `host` is free at once."""
        if host.nbytes != target.nbytes or not target.flags.c_contiguous:
            raise EdBatchError(
                f"{self.name}: {host.nbytes} bytes cannot be copied to an array of {target.nbytes} "
                f"({'' if target.flags.c_contiguous else 'not '}contiguous)"
            )
        with self.active():
            self._uploads.send(host, self.address(target))

    def download(self, array: Any) -> np.ndarray:
        """A copy on the host; waits for all that was enqueued before."""
        with self.active():
            return array.get(stream=self._stream)

    def active(self) -> AbstractContextManager[Any]:
        """In its block, this device and stream are those that `xp` uses, in this thread."""
        if os.getpid() != self._process:
            raise EdBatchError(
                f"{self.name}: this process was forked from one that uses the GPU; CUDA does not work in it: start "
                "processes by 'spawn', or use the GPU only after the fork"
            )
        return _Active(self.xp.cuda, self._number, self._stream)

    @contextmanager
    def capture(self) -> Iterator[CuPyRecording]:
        """Record what is enqueued on the recording's stream in its block, as a CUDA graph: one thread at a time.

        In the block only kernels may be enqueued that ran before: the first run of one loads it. Nothing may be
        allocated: memory that is given back would be used again, though the recording still writes to it. A block that
        fails records nothing.
        """
        runtime, stream = self.xp.cuda.runtime, self._recorded
        recording = CuPyRecording(self, stream.ptr, self._recorded_blas)
        with self.active():
            # Another thread may go on allocating; this one gets an error for what cannot be captured.
            stream.begin_capture(mode=runtime.streamCaptureModeThreadLocal)
            try:
                yield recording
            except BaseException:
                with suppress(runtime.CUDARuntimeError):  # which fails where what failed was not allowed in it
                    stream.end_capture()
                raise
            recording.graph = stream.end_capture()


class CuPyRecording:
    """Work that was recorded instead of enqueued.

    Attributes:
        stream, blas: what is enqueued on this stream, or with this handle of cuBLAS, is recorded.
    """

    def __init__(self, driver: CuPyDriver, stream: int, blas: int):
        self.stream, self.blas = stream, blas
        self.graph: Any = None
        self._driver = driver

    def launch(self) -> None:
        """Enqueue all of it."""
        if self.graph is None:
            raise EdBatchError(f"{self._driver.name}: a recording can be launched once its block has ended")
        with self._driver.active():
            self.graph.launch(stream=self._driver._stream)


class _Active:
    """A block with a device and a stream of its own; then those are in use again that were before, in this thread."""

    __slots__ = "_before", "_cuda", "_number", "_stream"

    def __init__(self, cuda: Any, number: int, stream: Any):
        self._cuda, self._number, self._stream = cuda, number, stream
        self._before: tuple[int, Any] = 0, None

    def __enter__(self) -> None:
        # Not CuPy's own blocks: an interrupt after one has begun would leave its device or stream in use for ever.
        runtime = self._cuda.runtime
        self._before = runtime.getDevice(), None
        try:
            # CuPy leaves out device 0 in a thread that has set none; but a launch by address needs its context.
            runtime.setDevice(self._number)
            self._before = self._before[0], self._cuda.get_current_stream()
            self._stream.use()
        except BaseException:
            self.__exit__()
            raise

    @leaving
    def __exit__(self, *_: object) -> None:
        runtime, (device, stream) = self._cuda.runtime, self._before
        if stream is not None:  # of the device of this block
            runtime.setDevice(self._number)
            stream.use()
        runtime.setDevice(device)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
