"""BLAS: matrix products with few rows, at the speed of products with many; and what an update of parameters does."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import c_function, call_kernel
from edbatch.kernels.tables import Matrices, Matrix, Sizes

# OpenBLAS multiplies small matrices (up to a million multiplications) as they lie in memory and copies larger ones
# into another order first, which costs more than the product where x has few rows. A product of few rows is therefore
# made of small ones, each over some columns of x. Measured, [m, 512] x [512, 1280] in microseconds, in one piece and
# in pieces: m = 2: 311, 78; 8: 376, 139; 32: 579, 405; 48: 688, 576; 64: 840, 939. And [64, 128] x
# [128, 320]: 48, 38.
SMALL = 1_000_000
LEAST_PIECE = 16
# Where w is stored the other way round, small products are fast for a few rows only: [2, 1280] x [1280, 512]: 251, 75;
# but with 64 rows 828, 1330.
LEAST_PIECE_TRANSPOSED = 256


MOST = 1 << 30  # entries that BLAS, which counts in 32 bits, is given at a time
_sdot, _ddot = c_function("plplp", "f"), c_function("plplp", "d")
_gemm = c_function("ppppp" + "plplp" + "plp")
TURNED, AS_IT_IS = map(ord, "TN")
# The bits of 1 as a number of either size, the least significant first.
ONE_BITS, SINGLE_ONE_BITS = (int(np.array(1, number).view(word)) for number, word in (("f8", "i8"), ("f4", "i4")))


class Gemm(NamedTuple):
    """A BLAS' function.

    Attributes:
        address: of `sgemm` or `dgemm`.
        itemsize: bytes of an entry.
    """

    address: int
    itemsize: int


def gemms() -> np.ndarray:
    """The addresses of SciPy's `sgemm` and `dgemm`: that of entries of s bytes at s // 8."""
    return _addresses("sgemm", "dgemm")


def dots() -> np.ndarray:
    """The same of `sdot` and `ddot`."""
    return _addresses("sdot", "ddot")


@cache
def _addresses(*names: str) -> np.ndarray:
    from numba.extending import get_cython_function_address

    return np.array([get_cython_function_address("scipy.linalg.cython_blas", name) for name in names])


@compiled(error_model="numpy")
def _multiply(gemm: Gemm, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w, or (`add`) added to `out`, row by row, through `sgemm` or `dgemm`, which count by columns."""
    one = ONE_BITS if gemm.itemsize == 8 else SINGLE_ONE_BITS
    _gemm(
        gemm.address, TURNED if w.turned else AS_IT_IS, TURNED if x.turned else AS_IT_IS, sizes.n, sizes.m, sizes.k,
        one, w.address, w.distance, x.address, x.distance, one if add else 0, out.address, out.distance,
    )  # fmt: skip


@compiled(error_model="numpy")
def multiply(gemm: Gemm, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w; `add`: is added to what `out` holds. `out` is not turned."""
    m, n, k = sizes
    piece = k
    if m * n * k > SMALL >= m * n * (LEAST_PIECE_TRANSPOSED if w.turned else LEAST_PIECE):
        piece = SMALL // (m * n) // 4 * 4
    for at in range(0, k, piece):
        _multiply(
            gemm,
            Sizes(m, n, min(piece, k - at)),
            Matrix(x.address + gemm.itemsize * (at * x.distance if x.turned else at), x.distance, x.turned),
            Matrix(w.address + gemm.itemsize * (at if w.turned else at * w.distance), w.distance, w.turned),
            out,
            1 if at > 0 or add else 0,
        )


@compiled(error_model="numpy")
def multiply_each(
    device: np.ndarray, itemsize: int, calls: int, sizes: Sizes, a: Matrices, b: Matrices, out: Matrices
) -> None:
    """out_i = a_i @ b_i for every call i; see `Emitter`."""
    gemm = Gemm(device[itemsize // 8], itemsize)
    for i in range(calls):
        _multiply(gemm, sizes, _of(a, i), _of(b, i), _of(out, i), 0)


@compiled(error_model="numpy")
def _of(matrices: Matrices, call: int) -> Matrix:
    first = matrices.first
    return Matrix(first.address + call * matrices.stride, first.distance, first.turned)


@compiled(small=True)
def call_kernels(calls: np.ndarray) -> None:
    """Call kernels, one after the other; `calls` [n, 3]: the kernel's address, rows, address of what else is given."""
    for at in range(len(calls)):
        if calls[at, 1]:
            call_kernel(calls[at, 0], 0, calls[at, 1], calls[at, 2])


@compiled(small=True)
def sum_squares(dots: np.ndarray, lists: np.ndarray, found: np.ndarray) -> None:
    """Fill in the sums of the squares of lists of numbers.

    Args:
        dots: see `products.dots`.
        lists: [n, 3], of each list the address, how many numbers it has, and their size.
        found: [n].
    """
    for at in range(len(lists)):
        begin, n, itemsize = lists[at, 0], lists[at, 1], lists[at, 2]
        found[at] = 0.0
        for first in range(0, n, MOST):
            entries, some = begin + itemsize * first, min(n - first, MOST)
            if itemsize == 8:
                found[at] += _ddot(dots[1], some, entries, 1, entries, 1)
            else:
                found[at] += _sdot(dots[0], some, entries, 1, entries, 1)
