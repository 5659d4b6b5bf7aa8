"""Memory by address, and calls of compiled functions by address, inside Numba.

Compiled code that is handed addresses can be cached on disk, and one compiled loop can call kernels that were generated
after it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.extending import _Intrinsic


class Intrinsic(_Intrinsic):  # type: ignore[misc]
    """Of Numba, and a function that does the same in Python, for loops that are interpreted."""

    python: Callable | None = None

    def __call__(self, *args: Any) -> Any:
        """In Python."""
        return super().__call__(*args) if self.python is None else self.python(*args)


def intrinsic(function: Any = None, *, python: Callable | None = None) -> Any:
    """`numba.extending.intrinsic`, whose result is called without the typing context that the function takes.

    Args:
        python: what does the same in Python, if anything does.
    """
    if function is None:
        return lambda function: intrinsic(function, python=python)
    found = Intrinsic(function.__name__, function)
    found.python = python
    found._register()
    return found


def _pointer(context, builder, signature, args):
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


@intrinsic
def floats_at(context, address):
    """float32 values from an address on; indexed without a test for negative positions."""
    return types.CPointer(types.float32)(types.int64), _pointer


@intrinsic
def words_at(context, address):
    """Values of 4 bytes, whatever they mean, from an address on."""
    return types.CPointer(types.int32)(types.int64), _pointer


# What kernels look like: rows, and the address of what else is given (see `language.given`).
KERNEL = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)


def _call_kernel(function: int, n: int, given: int) -> None:
    KERNEL(int(function))(int(n), int(given))


@intrinsic(python=_call_kernel)
def call_kernel(context, function, n, given):
    """function(n, given) of a kernel; `given` is an address."""

    def generate(context, builder, signature, args):
        function, n, given = args
        words = context.get_value_type(types.CPointer(types.int64))
        # Numba's C functions are plain C functions: void f(int64, int64 *).
        kind = ir.FunctionType(ir.VoidType(), [n.type, words])
        builder.call(builder.inttoptr(function, kind.as_pointer()), [n, builder.inttoptr(given, words)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def call_sgemm(context, function, m, n, k, x, ldx, x_turned, w, ldw, w_turned, beta, out, ldo):
    """out[m, n] = x[m, k] @ w[k, n] + beta * out, row by row, through BLAS' `sgemm` (which counts by columns).

    Matrices are addresses and distances between rows; turned (not 0): x is stored as [k, m], w as [n, k].
    """

    def generate(context, builder, signature, args):
        function, m, n, k, x, ldx, x_turned, w, ldw, w_turned, beta, out, ldo = args
        letter, integer, number = ir.IntType(8), ir.IntType(32), ir.FloatType()

        def boxed(value, type):
            pointer = cgutils.alloca_once(builder, type)
            builder.store(value, pointer)
            return pointer

        def int32(value):
            return boxed(builder.trunc(value, integer), integer)

        def matrix(value):
            return builder.inttoptr(value, number.as_pointer())

        def order(turned):
            letters = (ir.Constant(letter, ord(name)) for name in "TN")
            return boxed(
                builder.select(builder.icmp_signed("!=", turned, ir.Constant(turned.type, 0)), *letters), letter
            )

        given = [
            order(w_turned), order(x_turned), int32(n), int32(m), int32(k), boxed(ir.Constant(number, 1.0), number),
            matrix(w), int32(ldw), matrix(x), int32(ldx), boxed(beta, number), matrix(out), int32(ldo),
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        builder.call(builder.inttoptr(function, kind.as_pointer()), given)
        return context.get_dummy_value()

    whole = types.int64
    signature = types.void(*(whole,) * 10, types.float32, whole, whole)
    return signature, generate


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


@intrinsic(python=_address)
def int64_address(context, array):
    """Where the entries of an array begin."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), generate
