"""What EdBatch uses of CuPy, on host memory and without a GPU: it checks how calls nest, and what they are given."""

import ctypes
from types import SimpleNamespace

import numpy as np


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class NVRTCError(RuntimeError):
    pass


class CompileException(Exception):
    pass


class Array:
    def __init__(self, values):
        self.values = values
        self.data = SimpleNamespace(ptr=values.ctypes.data)
        self.nbytes, self.flags = values.nbytes, SimpleNamespace(c_contiguous=values.flags.c_contiguous)

    def get(self, stream):
        stream.synchronize()
        return self.values.copy()


class FakeCupy:
    """A module `cupy`, with `gpus` GPUs; `log` is what it was asked to do, `current` the (device, stream) in use."""

    __version__ = "14.2.0"

    def __init__(self, gpus=1, built=13000, cublas=None, nvrtc=None):
        self.log, self.current, self.set = [], [(0, None)], []
        self.built, self.gpus, self.capturing = built, gpus, None
        owner = self

        class Device:
            def __init__(self, number):
                self.id, self.compute_capability = number, "100"

            def __enter__(self):
                owner.current.append((self.id, owner.current[-1][1]))

            def __exit__(self, *_):
                owner.current.pop()

        class Stream:
            def __init__(self, null=False, non_blocking=False, ptds=False):
                assert not any((null, ptds))
                self.ptr, self.device = 5678 if non_blocking else 1234, owner.current[-1][0]

            def __enter__(self):
                assert owner.current[-1][0] == self.device
                owner.current.append((self.device, self))

            def __exit__(self, *_):
                owner.current.pop()

            def synchronize(self):
                owner.log.append("synchronize")

            def begin_capture(self, mode=None):
                assert mode == 1
                assert owner.current[-1][0] == self.device
                assert owner.capturing is None
                owner.capturing = self.ptr

            def end_capture(self):
                assert owner.capturing == self.ptr
                owner.capturing = None
                return SimpleNamespace(launch=lambda stream: owner.log.append(("launch", stream.ptr)))

        class Event:
            def __init__(self, block=False, disable_timing=False, interprocess=False):
                assert disable_timing
                assert owner.current[-1][1] is not None
                self.done = False

            def record(self, stream=None):
                owner.log.append(("record", stream.ptr))

        class RawModule:
            def __init__(self, *, code, options, backend):
                assert (options, backend) == (("--std=c++17", "--fmad=false"), "nvrtc")
                self.code = code

            @property
            def module(self):
                if "error" in self.code:
                    raise CompileException("kern.cu(1): error: expected a declaration")
                if "headers" in self.code:
                    raise RuntimeError("Failed to find CUDA headers. Please install")
                if "builtins" in self.code:
                    raise NVRTCError("NVRTC_ERROR_BUILTIN_OPERATION_FAILURE (7)")
                if "memory" in self.code:
                    raise CUDADriverError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
                return SimpleNamespace(get_function=self.function)

            def function(self, name):
                if name not in self.code:
                    raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
                return SimpleNamespace(ptr=self.code.index(name))

        self.RawModule = RawModule
        self.runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            cudaDevAttrMultiProcessorCount=16,
            deviceGetAttribute=lambda attribute, number: 132,
            getDeviceCount=self.count,
            memcpyAsync=self.copy,
            memcpyHostToDevice=1,
            runtimeGetVersion=lambda: self.built,
            setDevice=self.set.append,
            streamCaptureModeThreadLocal=1,
        )
        self.cuda = SimpleNamespace(
            Device=Device,
            Event=Event,
            Stream=Stream,
            alloc_pinned_memory=lambda size: np.zeros(size, np.int8),
            compiler=SimpleNamespace(CompileException=CompileException),
            cublas="found",
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            nvrtc=SimpleNamespace(getVersion=nvrtc or (lambda: (13, 0))),
            runtime=self.runtime,
        )
        if cublas:
            self.cuda = Failing(self.cuda, "cublas", cublas)

    def count(self):
        if not self.gpus:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return self.gpus

    def empty(self, entries, dtype):
        assert self.current[-1][1] is not None
        return Array(np.empty(entries, dtype))

    def copy(self, target, source, size, kind, stream):
        assert (kind, stream) == (1, 1234)
        self.log.append(("copy", size))
        ctypes.memmove(target, source, size)


class Failing:
    """A module, one attribute of which cannot be imported."""

    def __init__(self, module, name, error):
        self._module, self._name, self._error = module, name, error

    def __getattr__(self, name):
        if name == self._name:
            raise self._error
        return getattr(self._module, name)


GEMM = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_int,) * 5, ctypes.c_void_p,
    *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int) * 2, ctypes.c_void_p,
    ctypes.c_void_p, *(ctypes.c_int,) * 4,
)  # fmt: skip  # cublasGemmEx


class StatusName:
    """`cublasGetStatusName`, whose types can be set."""

    def __call__(self, status):
        return {3: b"CUBLAS_STATUS_ALLOC_FAILED"}[status]


class FakeBlas:
    """cuBLAS' C functions; `calls` are those that were made, `failing` is the name of one that fails."""

    def __init__(self, failing=None):
        self.calls, self.failing = [], failing
        self.cublasGetStatusName = StatusName()
        self.cublasGemmEx = GEMM(self._multiply)
        self.cublasGemmStridedBatchedEx = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)

    def _multiply(self, *given):
        self.calls.append(("cublasGemmEx", *given))
        return 3 if self.failing == "cublasGemmEx" else 0

    def __getattr__(self, name):
        def function(*given):
            self.calls.append((name, *(value.value for value in given if hasattr(value, "value"))))
            if name == "cublasCreate_v2":
                given[0]._obj.value = 77
            return 3 if name == self.failing else 0

        return function
