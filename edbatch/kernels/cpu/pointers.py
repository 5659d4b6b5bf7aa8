"""Memory by address, and calls of compiled functions by address, inside Numba.

Compiled code that is handed addresses can be cached on disk, and one compiled loop can call kernels that were generated
after it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils

from edbatch.compiling.intrinsic import intrinsic


def _pointer(context, builder, signature, args):
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


@intrinsic
def words_at(context, address):
    """Values of 4 bytes, whatever they mean, from an address on; indexed without a test for negative positions."""
    return types.CPointer(types.int32)(types.int64), _pointer


@intrinsic
def int64s_at(context, address):
    """The same of 8 bytes."""
    return types.CPointer(types.int64)(types.int64), _pointer


# What kernels look like: the first row, the row to stop before, and the address of what else is given (see
# `language.given`).
KERNEL = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def _call_kernel(function: int, first: int, stop: int, given: int) -> None:
    KERNEL(int(function))(int(first), int(stop), int(given))


@intrinsic(python=_call_kernel)
def call_kernel(context, function, first, stop, given):
    """function(first, stop, given) of a kernel; `given` is an address."""

    def generate(context, builder, signature, args):
        function, first, stop, given = args
        words = context.get_value_type(types.CPointer(types.int64))
        # Numba's C functions are plain C functions: void f(int64, int64, int64 *).
        kind = ir.FunctionType(ir.VoidType(), [first.type, stop.type, words])
        builder.call(builder.inttoptr(function, kind.as_pointer()), [first, stop, builder.inttoptr(given, words)])
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 4), generate


@intrinsic
def call_gemm(context, gemm, sizes, x, w, out, add):
    """out = x @ w, or (`add`) added to `out`, row by row, through BLAS' `sgemm` or `dgemm` (which count by columns).

    Args:
        gemm, sizes, x, w, out: see `kernels.cpu.products`, `kernels.tables`.
    """

    def generate(context, builder, signature, args):
        (function, itemsize), (m, n, k), x, w, out = (cgutils.unpack_tuple(builder, given) for given in args[:5])
        letter, integer, word = ir.IntType(8), ir.IntType(32), ir.IntType(64)

        def boxed(value, type):
            pointer = cgutils.alloca_once(builder, type)
            builder.store(value, pointer)
            return pointer

        def int32(value):
            return boxed(builder.trunc(value, integer), integer)

        def matrix(address):
            return builder.inttoptr(address, letter.as_pointer())

        def order(turned):
            letters = (ir.Constant(letter, ord(name)) for name in "TN")
            return boxed(
                builder.select(builder.icmp_signed("!=", turned, ir.Constant(turned.type, 0)), *letters), letter
            )

        def number(is_one):  # of either size: its bits, the least significant first
            double = builder.icmp_signed("==", itemsize, ir.Constant(word, 8))
            one = builder.select(double, ir.Constant(word, ONE_BITS), ir.Constant(word, SINGLE_ONE_BITS))
            return boxed(builder.select(is_one, one, ir.Constant(word, 0)), word)

        beta = number(builder.icmp_signed("!=", args[5], ir.Constant(word, 0)))
        given = [
            order(w[2]), order(x[2]), int32(n), int32(m), int32(k), number(ir.Constant(ir.IntType(1), 1)),
            matrix(w[0]), int32(w[1]), matrix(x[0]), int32(x[1]), beta, matrix(out[0]), int32(out[1]),
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        builder.call(builder.inttoptr(function, kind.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(gemm, sizes, x, w, out, types.int64), generate


def _call_dot(function: int, itemsize: int, n: int, address: int) -> float:
    memory: Any = (ctypes.c_char * int(n * itemsize)).from_address(int(address))
    entries: np.ndarray = np.frombuffer(memory, np.dtype(f"f{itemsize}"))
    return float(entries @ entries)


@intrinsic(python=_call_dot)
def call_dot(context, function, itemsize, n, address):
    """The sum of the squares of n entries that lie side by side, through BLAS' `sdot` or `ddot`."""

    def generate(context, builder, signature, args):
        function, itemsize, n, address = args
        integer, letter = ir.IntType(32), ir.IntType(8)
        count, one = (cgutils.alloca_once(builder, integer) for _ in range(2))
        builder.store(builder.trunc(n, integer), count)
        builder.store(ir.Constant(integer, 1), one)
        entries = builder.inttoptr(address, letter.as_pointer())
        given = [count, entries, one, entries, one]

        def sum_of(kind):
            known = ir.FunctionType(kind, [value.type for value in given])
            found = builder.call(builder.inttoptr(function, known.as_pointer()), given)
            return found if kind == ir.DoubleType() else builder.fpext(found, ir.DoubleType())

        double = builder.icmp_signed("==", itemsize, ir.Constant(itemsize.type, 8))
        result = cgutils.alloca_once(builder, ir.DoubleType())
        with builder.if_else(double) as (then, otherwise):
            with then:
                builder.store(sum_of(ir.DoubleType()), result)
            with otherwise:
                builder.store(sum_of(ir.FloatType()), result)
        return builder.load(result)

    return types.float64(types.int64, types.int64, types.int64, types.int64), generate


# The bits of 1 as a number of either size, the least significant first.
ONE_BITS, SINGLE_ONE_BITS = (int(np.array(1, number).view(word)) for number, word in (("f8", "i8"), ("f4", "i4")))


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


@intrinsic(python=_address)
def int64_address(context, array):
    """Where the entries of an array begin."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), generate
