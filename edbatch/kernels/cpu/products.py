"""BLAS: matrix products with few rows, at the speed of products with many; and what an update of parameters does."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import c_function
from edbatch.kernels.tables import Matrices, Matrix, Sizes

# Where OpenBLAS has kernels for small matrices, it multiplies up to a million numbers as they lie in memory; what is
# larger it copies into another order first, which costs more than the product where x has few rows. Such a product is
# made of small ones: over columns of the result, or, where that has few, over what is added up. In microseconds, whole
# and so: [32, 256] x [256, 1024] 238, 154; [16, 512] x [512, 1280] 389, 195; [16, 2048] x [2048, 512] 618, 315.
SMALL = 1_000_000
WITH_SMALL = frozenset(["SkylakeX", "Cooperlake", "SapphireRapids"])  # architectures that have these kernels
LEAST_PIECE, FEW_ROWS = 12, 100
# Of w stored the other way round they compute so many results at most; of fewer summands, copying costs little.
# [24, 1024] x [1024, 256] whole 308, in pieces 117; [32, 256] x [256, 64] 15, 10.
MOST_RESULTS, LEAST_SUM, LEAST_COLUMNS = 1200, 128, 8

_gemm = c_function("ppppp" + "plplp" + "plp")
TURNED, AS_IT_IS = map(ord, "TN")
# The bits of 1 as a number of either size, the least significant first.
ONE_BITS, SINGLE_ONE_BITS = (int(np.array(1, number).view(word)) for number, word in (("f8", "i8"), ("f4", "i4")))


class Gemm(NamedTuple):
    """A BLAS' function.

    Attributes:
        address: of `sgemm` or `dgemm`.
        itemsize: bytes of an entry.
        small: multiplications of a product that it computes as the matrices lie; 0: of none.
    """

    address: int
    itemsize: int
    small: int


@cache  # once per process: it goes through all libraries that are loaded, 10 ms
def libraries() -> list[Any]:
    """Every BLAS that is loaded when EdBatch first computes, NumPy's first."""
    from threadpoolctl import ThreadpoolController

    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    return sorted(found, key=lambda library: "numpy" not in library.filepath)


def most_small() -> int:
    """`Gemm.small` of the BLAS that is used."""
    told = [library.info() for library in libraries()]
    has_kernels = any(of["internal_api"] == "openblas" and of.get("architecture") in WITH_SMALL for of in told)
    return SMALL if has_kernels else 0


@cache
def gemms() -> np.ndarray:
    """The addresses of `sgemm` and `dgemm` (of s bytes: at s // 8): NumPy's OpenBLAS', if it is one; else SciPy's."""
    names = "sgemm", "dgemm"
    for library, form in product(libraries()[:1], ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}_")):
        functions = [getattr(library.dynlib, form.format(name), None) for name in names]
        if library.internal_api == "openblas" and all(functions):
            return np.array([ctypes.cast(function, ctypes.c_void_p).value for function in functions])  # type: ignore[arg-type]
    from numba.extending import get_cython_function_address

    libraries.cache_clear()  # there will be one more
    return np.array([get_cython_function_address("scipy.linalg.cython_blas", name) for name in names])


@compiled(small=True, error_model="numpy")
def _multiply(gemm: Gemm, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w, or (`add`) added to `out`, row by row, through `sgemm` or `dgemm`, which count by columns."""
    one = ONE_BITS if gemm.itemsize == 8 else SINGLE_ONE_BITS
    _gemm(
        gemm.address, TURNED if w.turned else AS_IT_IS, TURNED if x.turned else AS_IT_IS, sizes.n, sizes.m, sizes.k,
        one, w.address, w.distance, x.address, x.distance, one if add else 0, out.address, out.distance,
    )  # fmt: skip


@compiled(small=True, error_model="numpy")
def multiply(gemm: Gemm, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w; `add`: is added to what `out` holds. `out` is not turned."""
    m, n, k = sizes
    columns, piece, itemsize = n, k, gemm.itemsize
    if gemm.small > 0:
        columns = n if x.turned else _columns(sizes, w.turned, gemm.small)
        few = x.turned or m <= FEW_ROWS
        if columns == n and few and not w.turned and m * n * k > gemm.small >= m * n * LEAST_PIECE:
            piece = gemm.small // (m * n) // 4 * 4
    for column in range(0, n, columns):
        for at in range(0, k, piece):
            rows, ahead = (column, at) if w.turned else (at, column)
            _multiply(
                gemm,
                Sizes(m, min(columns, n - column), min(piece, k - at)),
                Matrix(x.address + itemsize * (at * x.distance if x.turned else at), x.distance, x.turned),
                Matrix(w.address + itemsize * (rows * w.distance + ahead), w.distance, w.turned),
                Matrix(out.address + itemsize * column, out.distance, 0),
                1 if at > 0 or add else 0,
            )


@compiled(small=True, error_model="numpy")
def _columns(sizes: Sizes, turned: int, small: int) -> int:
    """How many columns of a product of few rows are computed at a time."""
    m, n, k = sizes
    most = small // max(1, m * k)
    if turned:
        most = min(most, MOST_RESULTS // max(1, m)) // 4 * 4
        most = most if k >= LEAST_SUM and most >= LEAST_COLUMNS else 0
    elif 2 * n > k and most >= 32:
        most = most // 64 * 64 if most >= 64 else 32
    else:
        most = 0
    return most if 0 < most < n else max(1, n)


@compiled(small=True, error_model="numpy")
def multiply_each(
    device: np.ndarray, itemsize: int, calls: int, sizes: Sizes, a: Matrices, b: Matrices, out: Matrices
) -> None:
    """out_i = a_i @ b_i for every call i; see `Emitter`."""
    gemm = Gemm(device[itemsize // 8], itemsize, 0)
    for i in range(calls):
        _multiply(gemm, sizes, _of(a, i), _of(b, i), _of(out, i), 0)


@compiled(small=True, error_model="numpy")
def _of(matrices: Matrices, call: int) -> Matrix:
    first = matrices.first
    return Matrix(first.address + call * matrices.stride, first.distance, first.turned)
