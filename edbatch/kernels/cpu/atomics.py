"""Words that threads share, by address, and what threads wait for, inside Numba.

Every access is sequentially consistent: there are few of them, and each is beside microseconds of work.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils

from edbatch.compiling.numba_parts import intrinsic
from edbatch.kernels.cpu.pointers import c_function

_WORD, _ORDER = ir.IntType(64), "seq_cst"
# What tells a processor that a loop only waits, so that another thread of the same core may compute.
_PAUSES = {"x86_64": "x86.sse2.pause", "amd64": "x86.sse2.pause", "aarch64": "aarch64.hint", "arm64": "aarch64.hint"}
_PAUSE = _PAUSES.get(platform.machine().lower(), "")
_YIELD = 1  # the number of that hint


def _of_word(result: types.Type, count: int, emit: Callable[..., Any]) -> Any:
    """A function of `count` words, the first of which is the address of another: what `emit` writes, given where."""

    def function(context, *words):
        def generate(context, builder, signature, args):
            address, *others = cgutils.unpack_tuple(builder, args[0])
            found = emit(builder, builder.inttoptr(address, _WORD.as_pointer()), *others)
            return context.get_dummy_value() if result == types.void else found

        return result(types.UniTuple(types.int64, count)), generate

    return intrinsic(function)


#: (address): the word there.
word_at = _of_word(types.int64, 1, lambda builder, place: builder.load_atomic(place, _ORDER, 8))
#: (address, word): write it.
put_word = _of_word(types.void, 2, lambda builder, place, word: builder.store_atomic(word, place, _ORDER, 8))
#: (address, more): add to the word; what it was.
add_word = _of_word(types.int64, 2, lambda builder, place, more: builder.atomic_rmw("add", place, more, _ORDER))


def _exchange(builder, place, before, after):
    return builder.extract_value(builder.cmpxchg(place, before, after, _ORDER, _ORDER), 1)


#: (address, before, after): write a word if it is what it was before; whether it was.
exchanged = _of_word(types.boolean, 3, _exchange)
#: (C's `clock_gettime`, kind, address of two words): write what a clock shows, in seconds and nanoseconds.
read_clock = c_function("il", "i")
#: (`PyThread_acquire_lock`, lock, 1): wait for a lock of Python's, without Python.
wait_for_lock = c_function("li", "i")
#: (`PyThread_release_lock`, lock): give such a lock back.
unlock = c_function("l")


@intrinsic
def pause(context):
    """What a loop that waits for a word does in each turn."""

    def generate(context, builder, signature, args):
        given = [ir.Constant(ir.IntType(32), _YIELD)] if _PAUSE.endswith("hint") else []
        if _PAUSE:
            type = ir.FunctionType(ir.VoidType(), [one.type for one in given])
            builder.call(cgutils.get_or_insert_function(builder.module, type, f"llvm.{_PAUSE}"), given)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def put_record(context, address, record):
    """Write a named tuple."""

    def generate(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, record), generate


@intrinsic
def record_at(context, address, like):
    """Read a named tuple; `like`: any of its type."""

    def generate(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], args[1].type.as_pointer()), align=8)

    return like(types.int64, like), generate
