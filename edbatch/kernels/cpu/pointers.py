"""Memory by address, and calls of compiled functions by address, inside Numba.

Compiled code that is handed addresses can be cached on disk, and one compiled loop can call kernels that were generated
after it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils

from edbatch.compiling.compiled import interpreting
from edbatch.compiling.numba_parts import intrinsic


def _pointer(context, builder, signature, args):
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


@intrinsic
def words_at(context, address):
    """Values of 4 bytes, whatever they mean, from an address on; indexed without a test for negative positions."""
    return types.CPointer(types.int32)(types.int64), _pointer


# Of what C functions take and give: in C, and what Numba gives back.
_C_TYPES = {"i": ctypes.c_int32, "l": ctypes.c_int64, "p": ctypes.c_void_p, "f": ctypes.c_float, "d": ctypes.c_double}
_RESULTS = {"": types.void, "i": types.int32, "f": types.float32, "d": types.float64}


def c_function(kinds: str, result: str = "") -> Any:
    """Make a function (address, *integers) that calls a C function.

    Args:
        kinds: of its arguments: "i" an int; "l" what has 64 bits, an address too; "p" the address of such a word, whose
            first bytes are an int or a letter as well.
        result: "" none, "i" an int, "f" a float, "d" a double.
    """

    @cache  # making one takes 30 us
    def known() -> Any:
        return ctypes.PYFUNCTYPE(_C_TYPES.get(result), *map(_C_TYPES.__getitem__, kinds))

    def in_python(function: int, *given: int) -> Any:
        words = [ctypes.c_int64(int(value)) for value in given]
        pairs = zip(kinds, words, strict=True)
        return known()(int(function))(*(ctypes.addressof(word) if kind == "p" else word.value for kind, word in pairs))

    @intrinsic(python=in_python)
    def call(context, function, *given):
        def generate(context, builder, signature, args):
            passed = []
            items = cgutils.unpack_tuple(builder, args[1])
            for kind, value, known in zip(kinds, items, signature.args[1], strict=True):
                word = context.cast(builder, value, known, types.int64)
                boxed = cgutils.alloca_once_value(builder, word) if kind == "p" else word
                passed.append(builder.trunc(word, ir.IntType(32)) if kind == "i" else boxed)
            found = ir.VoidType() if not result else context.get_value_type(_RESULTS[result])
            type = ir.FunctionType(found, [value.type for value in passed])
            value = builder.call(builder.inttoptr(args[0], type.as_pointer()), passed)
            return value if result else context.get_dummy_value()

        return _RESULTS[result](types.int64, types.BaseTuple.from_types(given)), generate

    return call


def _call_in_python(function: int, given: int) -> bool:
    token = interpreting.set(False)  # what is called is the user's
    try:
        ctypes.cast(int(function), ctypes.py_object).value(int(given))
    finally:
        interpreting.reset(token)
    return True


@intrinsic(python=_call_in_python)
def call_python(context, function, given):
    """Call an object of Python, by its address, with an integer, while Python's lock is held; whether it returned.

    If not, it raised an exception, which is raised when the compiled code returns to Python, and that has to be next.
    """

    def generate(context, builder, signature, args):
        python = context.get_python_api(builder)
        argument = python.long_from_longlong(args[1])
        result = python.call_function_objargs(builder.inttoptr(args[0], python.pyobj), (argument,))
        returned = cgutils.is_not_null(builder, result)
        for one in (argument, result):
            python.decref(one)  # of null it does nothing
        return returned

    return types.boolean(types.int64, types.int64), generate


#: (function, first row, row to stop before, addresses of what else is given and of scratch): see `language.given`.
call_kernel = c_function("llll")


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


@intrinsic(python=_address)
def int64_address(context, array):
    """Where the entries of an array begin."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), generate
