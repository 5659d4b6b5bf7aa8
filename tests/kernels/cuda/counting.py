"""What a block asks of CUDA, counted: calls that wait, allocate or copy, whoever makes them.

NVIDIA's profiling library (CUPTI) calls back at each call of CUDA's runtime and of its driver, also those that CuPy's
compiled modules and cuBLAS make: to replace functions of `cupy.cuda.runtime` would show none of these. A call of the
runtime may be counted with the call of the driver that it makes: what matters is which are 0. Requests to CuPy's memory
pool, most of which make no call, are counted by CuPy's own hook.

It does not see
- whether an asynchronous copy waits, as those from and to memory that is not pinned may: `copies` are counted
- requests to CuPy's pool from other threads: its hook belongs to a thread
"""

import ctypes
import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

DRIVER_CALLS, RUNTIME_CALLS = 1, 2  # of CUpti_CallbackDomain
ENTERED = 0  # of CUpti_ApiCallbackSite

# Names are as CUDA exports them, some with a suffix: cuMemcpyDtoH_v2, cudaMalloc_v3020, cuStreamSynchronize_ptsz.
COPY = re.compile(r"cu(da)?Mem(cpy|set)")
ALLOCATION = re.compile(r"cu(da)?(Mem)?(Host)?(Alloc|Malloc|Free)|cu(da)?Mem(Create|Release|HostRegister|PoolCreate)")
WAIT = re.compile(r"cu(da)?(Stream|Event|Ctx|Device|Thread)Synchronize|cu(da)?Mem(cpy|set)(?!\w*Async)")
LAUNCH = re.compile(r"_*cu(da)?(Graph)?Launch(?!HostFunc)")


class CallbackData(ctypes.Structure):
    """The beginning of CUpti_CallbackData."""

    _fields_ = (("site", ctypes.c_int), ("function", ctypes.c_char_p))


CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(CallbackData)
)  # CUpti_CallbackFunc


@dataclass
class Calls:
    """How often each function of CUDA was called, and each kind of request made to CuPy's pool."""

    functions: Counter = field(default_factory=Counter)
    pool: Counter = field(default_factory=Counter)

    def matching(self, pattern):
        return {name: n for name, n in self.functions.items() if pattern.match(name)}

    @property
    def waits(self):
        return self.matching(WAIT)

    @property
    def allocations(self):
        return self.matching(ALLOCATION)

    @property
    def copies(self):
        return self.matching(COPY)

    @property
    def launches(self):
        return self.matching(LAUNCH)


@contextmanager
def counted(cupti=None, cupy=None):
    """The `Calls` of a block. For tests without a GPU, `cupti` and `cupy` can be given."""
    if cupy is None:
        import cupy
    calls, cupti = Calls(), cupti or library()

    @CALLBACK
    def called(_, domain, number, data):
        if data.contents.site == ENTERED:
            calls.functions[data.contents.function.decode()] += 1

    class Hook(cupy.cuda.MemoryHook):
        name = "counted"

        def malloc_preprocess(self, **_):  # a request to the pool
            calls.pool["malloc"] += 1

        def alloc_preprocess(self, **_):  # ... that it could not serve itself
            calls.pool["alloc"] += 1

    subscriber = ctypes.c_void_p()
    check(cupti, cupti.cuptiSubscribe(ctypes.byref(subscriber), called, None), "cuptiSubscribe")
    try:
        with Hook():
            for domain in DRIVER_CALLS, RUNTIME_CALLS:
                check(cupti, cupti.cuptiEnableDomain(ctypes.c_uint32(1), subscriber, domain), "cuptiEnableDomain")
            yield calls
    finally:
        check(cupti, cupti.cuptiUnsubscribe(subscriber), "cuptiUnsubscribe")


def check(cupti, result, name):
    if result != 0:
        described = ctypes.c_char_p()
        cupti.cuptiGetResultString(result, ctypes.byref(described))
        raise RuntimeError(f"{name}: {described.value.decode()}")


def library():
    """CUPTI, from NVIDIA's wheel or toolkit; where there is none, the test is skipped."""
    for path in places():
        if path.is_file():
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL("libcupti.so")
    except OSError as missing:
        pytest.skip(f"NVIDIA's CUPTI is not there: {missing}")


def places():
    for wheel in "nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12":
        try:
            yield from (Path(f.locate()) for f in files(wheel) or () if f.match("libcupti.so.1?"))
        except PackageNotFoundError:
            continue
    toolkit = Path(os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    yield from (toolkit / folder / "libcupti.so" for folder in ("extras/CUPTI/lib64", "lib64"))
