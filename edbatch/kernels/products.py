"""Matrix products with few rows, at the speed of products with many."""

from __future__ import annotations

from functools import cache

from numba import float32

from edbatch.compiled import compiled
from edbatch.kernels.pointers import call_sgemm

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


@cache
def sgemm_address() -> int:
    """The address of SciPy's `sgemm`."""
    from numba.extending import get_cython_function_address

    address: int = get_cython_function_address("scipy.linalg.cython_blas", "sgemm")
    return address


@compiled
def multiply(
    sgemm: int,
    m: int,
    n: int,
    k: int,
    x: int,
    ldx: int,
    w: int,
    ldw: int,
    transposed: int,
    add: int,
    out: int,
    ldo: int,
) -> None:
    """out[m, n] = x[m, k] @ w, float32; `add`: is added to what `out` holds.

    Args:
        sgemm: address of the BLAS function.
        x, w, out: addresses.
        ldx, ldw, ldo: distances between rows, in entries.
        transposed: w is stored as [n, k] instead of [k, n].
    """
    piece = k
    if m * n * k > SMALL >= m * n * (LEAST_PIECE_TRANSPOSED if transposed else LEAST_PIECE):
        piece = SMALL // (m * n) // 4 * 4
    for at in range(0, k, piece):
        call_sgemm(
            sgemm, m, n, min(piece, k - at), x + 4 * at, ldx, 0,
            w + 4 * (at if transposed else at * ldw), ldw, transposed,
            float32(0 if at == 0 and not add else 1), out, ldo,
        )  # fmt: skip


@compiled
def multiply_each(
    sgemm: int, calls: int, m: int, n: int, k: int,
    a: int, a_stride: int, lda: int, a_turned: int,
    b: int, b_stride: int, ldb: int, b_turned: int,
    out: int, out_stride: int,
) -> None:  # fmt: skip
    """out_i[m, n] = a_i[m, k] @ b_i[k, n] for every call i, float32.

    Args:
        a, b, out: addresses of the first call's.
        a_stride, b_stride, out_stride: distances between calls, in entries; 0: one for all.
        lda, ldb: distances between rows as stored, in entries.
        a_turned, b_turned: a is stored as [k, m], b as [n, k].
    """
    for i in range(calls):
        call_sgemm(
            sgemm, m, n, k, a + 4 * i * a_stride, lda, a_turned, b + 4 * i * b_stride, ldb, b_turned,
            float32(0), out + 4 * i * out_stride, n,
        )  # fmt: skip
