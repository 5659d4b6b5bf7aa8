"""CUDA's and cuBLAS' functions called by address inside Numba: some two microseconds a launch, no Python between."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

from enum import IntEnum

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils

from edbatch.compiled import compiled
from edbatch.errors import EdBatchError
from edbatch.kernels.cuda.cublas import COMPUTE_FLOAT32, DEFAULT_ALGORITHM, FLOAT32
from edbatch.kernels.pointers import int64_address, intrinsic


class Gpu(IntEnum):
    """What compiled code knows of a GPU: positions in an int64 array of handles, addresses and settings."""

    LAUNCH = 0  # addresses of `cuLaunchKernel`, `cublasGemmEx`, `cublasGemmStridedBatchedEx`
    GEMM = 1
    GEMM_STRIDED = 2
    BLAS = 3  # handle of cuBLAS
    STREAM = 4
    PROCESSORS = 5  # multiprocessors
    COMPUTE = 6  # of products, see `PRECISIONS`
    GATHER = 7  # kernels written by hand
    SEGMENT_REDUCE = 8
    ADD_ROWS = 9
    ADD_GROUPED = 10
    ADD_ALL = 11
    STATUS = 12  # the first error of a call; 0: none


#: cuBLAS' compute types: what a product of float32 matrices may be computed in.
PRECISIONS = {"float32": COMPUTE_FLOAT32, "tf32": 77, "bf16": 75}

_INT, _LONG, _POINTER = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()


def _call(builder, address, result, arguments):
    """Call a C function; an argument is (value, type), integers become pointers and narrower integers."""
    given = []
    for value, kind in arguments:
        if kind is _POINTER and not isinstance(value.type, ir.PointerType):
            value = builder.inttoptr(value, kind)
        elif kind is _POINTER:
            value = builder.bitcast(value, kind)
        elif kind is _INT and value.type.width > 32:
            value = builder.trunc(value, kind)
        given.append(value)
    kind = ir.FunctionType(result, [value.type for value in given])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), given)


@intrinsic
def call_launch(context, function, kernel, gx, gy, gz, bx, by, stream, values):
    """cuLaunchKernel; `values` is the address of the addresses of the kernel's parameters."""

    def generate(context, builder, signature, args):
        function, kernel, gx, gy, gz, bx, by, stream, values = args
        one, none = ir.Constant(_LONG, 1), ir.Constant(_LONG, 0)
        ints = [(value, _INT) for value in (gx, gy, gz, bx, by, one, none)]
        return _call(
            builder,
            function,
            _INT,
            [(kernel, _POINTER), *ints, (stream, _POINTER), (values, _POINTER), (none, _POINTER)],
        )

    return types.int32(*(types.int64,) * 9), generate


@intrinsic
def call_gemm(
    context, function, handle, a_turned, b_turned, m, n, k, a, lda, b, ldb, beta, c, ldc, compute
):  # fmt: skip
    """cublasGemmEx on float32: C[m, n] = A[m, k] B[k, n] + beta C, by columns; turned: 1 where stored the other way."""

    def generate(context, builder, signature, args):
        function, handle, a_turned, b_turned, m, n, k, a, lda, b, ldb, beta, c, ldc, compute = args
        float32, default = (ir.Constant(_LONG, value) for value in (FLOAT32, DEFAULT_ALGORITHM))
        alpha, beta = _scalars(builder, beta)
        return _call(builder, function, _INT, [
            (handle, _POINTER), (a_turned, _INT), (b_turned, _INT), (m, _INT), (n, _INT), (k, _INT), (alpha, _POINTER),
            (a, _POINTER), (float32, _INT), (lda, _INT), (b, _POINTER), (float32, _INT), (ldb, _INT), (beta, _POINTER),
            (c, _POINTER), (float32, _INT), (ldc, _INT), (compute, _INT), (default, _INT),
        ])  # fmt: skip

    return types.int32(*(types.int64,) * 11, types.float32, *(types.int64,) * 3), generate


@intrinsic
def call_gemm_strided(
    context, function, handle, a_turned, b_turned, m, n, k, a, lda, a_step, b, ldb, b_step, c, ldc, c_step, count,
    compute,
):  # fmt: skip
    """cublasGemmStridedBatchedEx on float32: `count` products C = A B, by columns, so many entries apart."""

    def generate(context, builder, signature, args):
        (
            function,
            handle,
            a_turned,
            b_turned,
            m,
            n,
            k,
            a,
            lda,
            a_step,
            b,
            ldb,
            b_step,
            c,
            ldc,
            c_step,
            count,
            compute,
        ) = args
        float32, default = (ir.Constant(_LONG, value) for value in (FLOAT32, DEFAULT_ALGORITHM))
        alpha, beta = _scalars(builder, ir.Constant(ir.FloatType(), 0.0))
        return _call(builder, function, _INT, [
            (handle, _POINTER), (a_turned, _INT), (b_turned, _INT), (m, _INT), (n, _INT), (k, _INT), (alpha, _POINTER),
            (a, _POINTER), (float32, _INT), (lda, _INT), (a_step, _LONG), (b, _POINTER), (float32, _INT), (ldb, _INT),
            (b_step, _LONG), (beta, _POINTER), (c, _POINTER), (float32, _INT), (ldc, _INT), (c_step, _LONG),
            (count, _INT), (compute, _INT), (default, _INT),
        ])  # fmt: skip

    return types.int32(*(types.int64,) * 18), generate


def _scalars(builder, beta):
    found = []
    for value in (ir.Constant(ir.FloatType(), 1.0), beta):
        pointer = cgutils.alloca_once(builder, ir.FloatType())
        builder.store(value, pointer)
        found.append(pointer)
    return found


_LAUNCH, _GEMM, _GEMM_STRIDED, _BLAS, _STREAM = map(int, list(Gpu)[:5])
_COMPUTE, _STATUS = int(Gpu.COMPUTE), int(Gpu.STATUS)


@compiled
def launch(
    gpu: np.ndarray, kernel: int, gx: int, gy: int, gz: int, bx: int, by: int, values: np.ndarray, count: int
) -> None:
    """Enqueue a kernel whose parameters are the first `count` of `values` (int64)."""
    pointers = np.empty(count, np.int64)
    begin = int64_address(values)
    for i in range(count):
        pointers[i] = begin + 8 * i
    status = call_launch(gpu[_LAUNCH], kernel, gx, gy, gz, bx, by, gpu[_STREAM], int64_address(pointers))
    pointers[0] = values[0]  # or both would be freed before the call: Numba does not know that it reads them
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = status


@compiled
def multiply(
    gpu: np.ndarray, m: int, n: int, k: int, x: int, ldx: int, w: int, ldw: int, transposed: int, add: int, out: int,
    ldo: int,
) -> None:  # fmt: skip
    """out[m, n] = x[m, k] @ w [+ out], row by row; arguments as of `kernels.products.multiply`."""
    # Read by columns, a matrix of rows is its transpose: outᵀ = wᵀ xᵀ.
    status = call_gemm(
        gpu[_GEMM], gpu[_BLAS], 1 if transposed else 0, 0, n, m, k, w, ldw, x, ldx, np.float32(1 if add else 0), out,
        ldo, gpu[_COMPUTE],
    )  # fmt: skip
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


@compiled
def multiply_each(
    gpu: np.ndarray, calls: int, m: int, n: int, k: int,
    a: int, a_stride: int, lda: int, a_turned: int,
    b: int, b_stride: int, ldb: int, b_turned: int,
    out: int, out_stride: int,
) -> None:  # fmt: skip
    """out_i[m, n] = a_i[m, k] @ b_i[k, n]; arguments as of `kernels.products.multiply_each`."""
    status = call_gemm_strided(
        gpu[_GEMM_STRIDED], gpu[_BLAS], 1 if b_turned else 0, 1 if a_turned else 0, n, m, k, b, ldb, b_stride,
        a, lda, a_stride, out, n, out_stride, calls, gpu[_COMPUTE],
    )  # fmt: skip
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


@compiled
def add_product(
    gpu: np.ndarray, m: int, n: int, k: int, left: int, ld_left: int, right: int, ld_right: int, fresh: bool, out: int,
    ldo: int,
) -> None:  # fmt: skip
    """out[m, n], by columns, = left[k, m]ᵀ @ right[k, n], both by rows [+ out]."""
    status = call_gemm(
        gpu[_GEMM], gpu[_BLAS], 0, 1, m, n, k, left, ld_left, right, ld_right, np.float32(0 if fresh else 1), out,
        ldo, gpu[_COMPUTE],
    )  # fmt: skip
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


def check(gpu: np.ndarray) -> None:
    """Raise `EdBatchError` if a call that was enqueued has failed since the last check."""
    status = int(gpu[_STATUS])
    if status:
        gpu[_STATUS] = 0
        library = "cuLaunchKernel" if status > 0 else "cuBLAS"
        raise EdBatchError(f"{library} failed with status {abs(status)}")
