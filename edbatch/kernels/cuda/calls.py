"""CUDA's and cuBLAS' functions called by address inside Numba: some two microseconds a launch, no Python between."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.errors import EdBatchError
from edbatch.kernels.cpu.pointers import c_function, int64_address
from edbatch.kernels.cuda.cublas import COMPUTE_FLOAT32, COMPUTE_FLOAT64, DEFAULT_ALGORITHM, FLOAT32, FLOAT64
from edbatch.kernels.cuda.geometry import Grid
from edbatch.kernels.tables import Matrices, Matrix, Sizes

# What compiled code knows of a GPU: positions in an int64 array of handles, addresses and settings.
LAUNCH = 0  # addresses of `cuLaunchKernel`, `cublasGemmEx`, `cublasGemmStridedBatchedEx`
GEMM = 1
GEMM_STRIDED = 2
BLAS = 3  # handle of cuBLAS
STREAM = 4
PROCESSORS = 5  # multiprocessors
COMPUTE = 6  # of products of float32, see `PRECISIONS`
GATHER = 7  # kernels written by hand, the next two of float32 and of float64
ADD_ALL_FLOAT = 8
ADD_ALL_DOUBLE = 9
STATUS = 10  # the first error of a call; 0: none
ZERO = 11  # what products are multiplied by: 0 of either dtype, 1 of float32, 1 of float64
ONE_FLOAT = 12
ONE_DOUBLE = 13
SQUARES = 14  # a kernel written by hand
WORDS = 15  # so many there are

#: cuBLAS' compute types: what a product of float32 matrices may be computed in.
PRECISIONS = {"float32": COMPUTE_FLOAT32, "tf32": 77, "bf16": 75}


_cu_launch_kernel = c_function("l" + "iiiiiii" + "lll", "i")
_cublas_gemm = c_function("liiiii" + "l" + "lii" + "lii" + "l" + "lii" + "ii", "i")
_cublas_gemm_strided_batched = c_function("liiiii" + "l" + "liil" + "liil" + "l" + "liil" + "iii", "i")


@compiled
def _note(gpu: np.ndarray, status: int) -> None:
    if status != 0 and gpu[STATUS] == 0:
        gpu[STATUS] = status


@compiled
def launch_given(gpu: np.ndarray, kernel: int, grid: Grid, given: np.ndarray) -> None:
    """Enqueue a kernel, given the addresses of its parameters."""
    status = _cu_launch_kernel(
        gpu[LAUNCH], kernel, grid.x, grid.y, grid.z, grid.along, grid.down, 1, 0, gpu[STREAM], int64_address(given), 0
    )
    _note(gpu, status)


@compiled
def launch(gpu: np.ndarray, kernel: int, grid: Grid, values: np.ndarray, count: int) -> None:
    """Enqueue a kernel whose parameters are the first `count` of `values` (int64)."""
    given = np.empty(count, np.int64)
    begin = int64_address(values)
    for i in range(count):
        given[i] = begin + 8 * i
    launch_given(gpu, kernel, grid, given)
    given[0] = values[0]  # or both would be freed before the call: Numba does not know that it reads them


@compiled
def _order(x: Matrix) -> int:
    return 1 if x.turned != 0 else 0  # CUBLAS_OP_T, CUBLAS_OP_N


@compiled
def _numbers(gpu: np.ndarray, itemsize: int) -> tuple[int, int, int]:
    """cuBLAS' numbers of a dtype and of what products are computed in; and the address of 1."""
    begin = int64_address(gpu)
    if itemsize == 8:
        return FLOAT64, COMPUTE_FLOAT64, begin + 8 * ONE_DOUBLE
    return FLOAT32, gpu[COMPUTE], begin + 8 * ONE_FLOAT


@compiled
def _multiply(gpu: np.ndarray, itemsize: int, sizes: Sizes, a: Matrix, b: Matrix, out: Matrix, add: int) -> None:
    """out = a @ b [+ out], by columns."""
    dtype, compute, one = _numbers(gpu, itemsize)
    factor = one if add != 0 else int64_address(gpu) + 8 * ZERO
    status = _cublas_gemm(
        gpu[GEMM], gpu[BLAS], _order(a), _order(b), sizes.m, sizes.n, sizes.k, one, a.address, dtype, a.distance,
        b.address, dtype, b.distance, factor, out.address, dtype, out.distance, compute, DEFAULT_ALGORITHM,
    )  # fmt: skip
    _note(gpu, -status)


@compiled
def multiply(gpu: np.ndarray, itemsize: int, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w [+ out], row by row; arguments as of `kernels.cpu.products.multiply`."""
    # Read by columns, a matrix of rows is its transpose: outᵀ = wᵀ xᵀ.
    _multiply(gpu, itemsize, Sizes(sizes.n, sizes.m, sizes.k), w, x, out, add)


@compiled
def multiply_each(
    gpu: np.ndarray, itemsize: int, calls: int, sizes: Sizes, a: Matrices, b: Matrices, out: Matrices
) -> None:
    """out_i = a_i @ b_i for every call i; arguments as of `kernels.cpu.products.multiply_each`."""
    dtype, compute, one = _numbers(gpu, itemsize)
    x, w, to, zero = a.first, b.first, out.first, int64_address(gpu) + 8 * ZERO
    status = _cublas_gemm_strided_batched(
        gpu[GEMM_STRIDED], gpu[BLAS], _order(w), _order(x), sizes.n, sizes.m, sizes.k, one, w.address, dtype,
        w.distance, b.stride // itemsize, x.address, dtype, x.distance, a.stride // itemsize, zero, to.address, dtype,
        to.distance, out.stride // itemsize, calls, compute, DEFAULT_ALGORITHM,
    )  # fmt: skip
    _note(gpu, -status)


@compiled
def add_product(
    gpu: np.ndarray, itemsize: int, sizes: Sizes, left: Matrix, right: Matrix, out: Matrix, fresh: bool
) -> None:
    """out[m, n], by columns, = left[k, m]ᵀ @ right[k, n], both by rows [+ out]."""
    turned = Matrix(right.address, right.distance, 1)
    _multiply(gpu, itemsize, sizes, left, turned, out, 0 if fresh else 1)


def check(gpu: np.ndarray) -> None:
    """Raise `EdBatchError` if a call that was enqueued has failed since the last check."""
    status = int(gpu[STATUS])
    if status:
        gpu[STATUS] = 0
        library = "cuLaunchKernel" if status > 0 else "cuBLAS"
        raise EdBatchError(f"{library} failed with status {abs(status)}")
