"""CUDA's and cuBLAS' functions called by address inside Numba: some two microseconds a launch, no Python between."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils

from edbatch.compiling.compiled import compiled
from edbatch.compiling.intrinsic import intrinsic
from edbatch.errors import EdBatchError
from edbatch.kernels.cpu.pointers import ONE_BITS, SINGLE_ONE_BITS, int64_address
from edbatch.kernels.cuda.cublas import COMPUTE_FLOAT32, COMPUTE_FLOAT64, DEFAULT_ALGORITHM, FLOAT32, FLOAT64
from edbatch.kernels.cuda.geometry import Grid
from edbatch.kernels.tables import Matrices, Matrix, Sizes


class Gpu(IntEnum):
    """What compiled code knows of a GPU: positions in an int64 array of handles, addresses and settings."""

    LAUNCH = 0  # addresses of `cuLaunchKernel`, `cublasGemmEx`, `cublasGemmStridedBatchedEx`
    GEMM = 1
    GEMM_STRIDED = 2
    BLAS = 3  # handle of cuBLAS
    STREAM = 4
    PROCESSORS = 5  # multiprocessors
    COMPUTE = 6  # of products of float32, see `PRECISIONS`
    GATHER = 7  # kernels written by hand, the last two of float32 and of float64
    ADD_ALL_FLOAT = 8
    ADD_ALL_DOUBLE = 9
    STATUS = 10  # the first error of a call; 0: none


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
def call_launch(context, function, kernel, grid, stream, values):
    """cuLaunchKernel; `values` is the address of the addresses of the kernel's parameters."""

    def generate(context, builder, signature, args):
        function, kernel, grid, stream, values = args
        one, none = ir.Constant(_LONG, 1), ir.Constant(_LONG, 0)
        ints = [(value, _INT) for value in (*cgutils.unpack_tuple(builder, grid), one, none)]
        return _call(
            builder,
            function,
            _INT,
            [(kernel, _POINTER), *ints, (stream, _POINTER), (values, _POINTER), (none, _POINTER)],
        )

    return types.int32(types.int64, types.int64, grid, types.int64, types.int64), generate


@intrinsic
def call_gemm(context, gpu, itemsize, sizes, a, b, c, add):
    """cublasGemmEx: C = A B [+ C], by columns, on float32 or float64; turned: not 0 where stored the other way.

    Args:
        gpu: address of an array as of `Gpu`.
        itemsize: bytes of an entry.
        sizes, a, b, c: see `kernels.tables`.
        add: not 0: to what C holds.
    """

    def generate(context, builder, signature, args):
        words = _words(builder, args[0])
        (m, n, k), a, b, c = (cgutils.unpack_tuple(builder, given) for given in args[2:6])
        of = _of_dtype(builder, words, args[1])
        given = [(words(Gpu.BLAS), _POINTER), *(_order(builder, x[2]) for x in (a, b)), (m, _INT), (n, _INT), (k, _INT)]
        given += [of.one, (a[0], _POINTER), of.type, (a[1], _INT), (b[0], _POINTER), of.type, (b[1], _INT)]
        given += [_scalar(builder, args[6], of), (c[0], _POINTER), of.type, (c[1], _INT), of.compute, of.algorithm]
        return _call(builder, words(Gpu.GEMM), _INT, given)

    return types.int32(types.int64, types.int64, sizes, a, b, c, types.int64), generate


@intrinsic
def call_gemm_strided(context, gpu, itemsize, count, sizes, a, b, c):
    """cublasGemmStridedBatchedEx: `count` products C = A B, by columns; a, b, c: `Matrices` of so many bytes apart."""

    def generate(context, builder, signature, args):
        words = _words(builder, args[0])
        m, n, k = cgutils.unpack_tuple(builder, args[3])
        of = _of_dtype(builder, words, args[1])
        parts = []
        for given in args[4:7]:
            stride, first = cgutils.unpack_tuple(builder, given)
            address, distance, turned = cgutils.unpack_tuple(builder, first)
            step = builder.sdiv(stride, args[1])
            parts.append(([(address, _POINTER), of.type, (distance, _INT), (step, _LONG)], turned))
        (a, a_turned), (b, b_turned), (c, _) = parts
        orders = [_order(builder, turned) for turned in (a_turned, b_turned)]
        given = [(words(Gpu.BLAS), _POINTER), *orders, (m, _INT), (n, _INT), (k, _INT), of.one, *a, *b]
        given += [_scalar(builder, ir.Constant(_LONG, 0), of), *c, (args[2], _INT), of.compute, of.algorithm]
        return _call(builder, words(Gpu.GEMM_STRIDED), _INT, given)

    return types.int32(types.int64, types.int64, types.int64, sizes, a, b, c), generate


class _OfDtype(NamedTuple):
    type: Any  # cuBLAS' number of it, and of what products are computed in
    compute: Any
    algorithm: Any
    bits: Any  # of 1
    one: Any


def _words(builder, address):
    """What reads an entry of an array of int64."""
    begin = builder.inttoptr(address, _LONG.as_pointer())
    return lambda position: builder.load(builder.gep(begin, [ir.Constant(_LONG, int(position))]))


def _of_dtype(builder, words, itemsize):
    """What a product's arguments are, given the bytes of an entry."""
    double = builder.icmp_signed("==", itemsize, ir.Constant(_LONG, 8))

    def either(of_double, of_float):
        return builder.select(double, of_double, of_float)

    type = either(ir.Constant(_LONG, FLOAT64), ir.Constant(_LONG, FLOAT32))
    compute = either(ir.Constant(_LONG, COMPUTE_FLOAT64), words(Gpu.COMPUTE))
    bits = either(ir.Constant(_LONG, ONE_BITS), ir.Constant(_LONG, SINGLE_ONE_BITS))
    algorithm = ir.Constant(_INT, DEFAULT_ALGORITHM)
    return _OfDtype((type, _INT), (compute, _INT), (algorithm, _INT), bits, _boxed(builder, bits))


def _scalar(builder, is_one, of):
    """Where 1 or 0 is."""
    test = builder.icmp_signed("!=", is_one, ir.Constant(_LONG, 0))
    return _boxed(builder, builder.select(test, of.bits, ir.Constant(_LONG, 0)))


def _boxed(builder, bits):
    pointer = cgutils.alloca_once(builder, _LONG)
    builder.store(bits, pointer)
    return pointer, _POINTER


def _order(builder, turned):
    return builder.zext(builder.icmp_signed("!=", turned, ir.Constant(turned.type, 0)), _INT), _INT


_LAUNCH, _STREAM, _STATUS = map(int, (Gpu.LAUNCH, Gpu.STREAM, Gpu.STATUS))


@compiled
def launch(gpu: np.ndarray, kernel: int, grid: Grid, values: np.ndarray, count: int) -> None:
    """Enqueue a kernel whose parameters are the first `count` of `values` (int64)."""
    pointers = np.empty(count, np.int64)
    begin = int64_address(values)
    for i in range(count):
        pointers[i] = begin + 8 * i
    status = call_launch(gpu[_LAUNCH], kernel, grid, gpu[_STREAM], int64_address(pointers))
    pointers[0] = values[0]  # or both would be freed before the call: Numba does not know that it reads them
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = status


@compiled
def multiply(gpu: np.ndarray, itemsize: int, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """out = x @ w [+ out], row by row; arguments as of `kernels.cpu.products.multiply`."""
    # Read by columns, a matrix of rows is its transpose: outᵀ = wᵀ xᵀ.
    status = call_gemm(int64_address(gpu), itemsize, Sizes(sizes.n, sizes.m, sizes.k), w, x, out, add)
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


@compiled
def multiply_each(
    gpu: np.ndarray, itemsize: int, calls: int, sizes: Sizes, a: Matrices, b: Matrices, out: Matrices
) -> None:
    """out_i = a_i @ b_i for every call i; arguments as of `kernels.cpu.products.multiply_each`."""
    turned = Sizes(sizes.n, sizes.m, sizes.k)
    status = call_gemm_strided(int64_address(gpu), itemsize, calls, turned, b, a, out)
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


@compiled
def add_product(
    gpu: np.ndarray, itemsize: int, sizes: Sizes, left: Matrix, right: Matrix, out: Matrix, fresh: bool
) -> None:
    """out[m, n], by columns, = left[k, m]ᵀ @ right[k, n], both by rows [+ out]."""
    turned = Matrix(right.address, right.distance, 1)
    status = call_gemm(int64_address(gpu), itemsize, sizes, left, turned, out, 0 if fresh else 1)
    if status != 0 and gpu[_STATUS] == 0:
        gpu[_STATUS] = -status


def check(gpu: np.ndarray) -> None:
    """Raise `EdBatchError` if a call that was enqueued has failed since the last check."""
    status = int(gpu[_STATUS])
    if status:
        gpu[_STATUS] = 0
        library = "cuLaunchKernel" if status > 0 else "cuBLAS"
        raise EdBatchError(f"{library} failed with status {abs(status)}")
