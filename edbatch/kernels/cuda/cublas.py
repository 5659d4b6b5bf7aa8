"""A handle of cuBLAS, made by way of its C interface."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from edbatch.errors import EdBatchError

#: `CUBLAS_DEFAULT_MATH` of cublasMath_t: float32 stays float32, nothing is rounded to TF32.
DEFAULT_MATH = 0
#: `CUDA_R_32F` and `CUDA_R_64F` of cudaDataType, `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_64F` of cublasComputeType_t,
#: `CUBLAS_GEMM_DEFAULT` of cublasGemmAlgo_t.
FLOAT32, FLOAT64 = 0, 1
COMPUTE_FLOAT32, COMPUTE_FLOAT64 = 68, 70
DEFAULT_ALGORITHM = -1


def loaded(major: int) -> ctypes.CDLL:
    """The cuBLAS of this CUDA that is in the process: by its name it is found wherever it was loaded from."""
    return ctypes.CDLL(f"cublas64_{major}.dll" if sys.platform == "win32" else f"libcublas.so.{major}")


def create(library: Any, stream: int, workspace: int, size: int) -> int:
    """A handle bound to a stream, that works in `size` bytes of device memory at the address `workspace`.

    With memory of its own it allocates nothing, can be captured in a CUDA graph, and gives the same result each time.
    It has made a product: what cuBLAS leaves until the first one is done.

    Raises:
        EdBatchError: cuBLAS reports an error.
    """
    handle, pointer = ctypes.c_void_p(), ctypes.c_void_p

    def call(name: str, *given: Any) -> None:
        status = getattr(library, name)(*given)
        if status != 0:
            describe = library.cublasGetStatusName
            describe.argtypes, describe.restype = [ctypes.c_int], ctypes.c_char_p
            raise EdBatchError(f"{name}: cuBLAS reports {describe(status).decode()} ({status})")

    call("cublasCreate_v2", ctypes.byref(handle))
    call("cublasSetStream_v2", handle, pointer(stream))
    # After the stream: setting that one goes back to the workspace of cuBLAS.
    call("cublasSetWorkspace_v2", handle, pointer(workspace), ctypes.c_size_t(size))
    call("cublasSetMathMode", handle, DEFAULT_MATH)
    one = ctypes.byref(ctypes.c_float(1))
    a, b, c = ((pointer(workspace + place), FLOAT32, 1) for place in (0, 256, 512))
    call("cublasGemmEx", handle, 0, 0, 1, 1, 1, one, *a, *b, one, *c, COMPUTE_FLOAT32, DEFAULT_ALGORITHM)
    return handle.value or 0
