"""Words that threads share, by address, and what threads wait for, inside Numba.

Every access is sequentially consistent: there are few of them, and each is beside microseconds of work.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"

from __future__ import annotations

import platform

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils

from edbatch.compiling.intrinsic import intrinsic

_WORD, _ORDER = ir.IntType(64), "seq_cst"
# What tells a processor that a loop only waits, so that another thread of the same core may compute.
_PAUSES = {"x86_64": "x86.sse2.pause", "amd64": "x86.sse2.pause", "aarch64": "aarch64.hint", "arm64": "aarch64.hint"}
_PAUSE = _PAUSES.get(platform.machine().lower(), "")
_YIELD = 1  # the number of that hint


def _at(builder, address):
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def word_at(context, address):
    """The word at an address."""

    def generate(context, builder, signature, args):
        return builder.load_atomic(_at(builder, args[0]), _ORDER, 8)

    return types.int64(types.int64), generate


@intrinsic
def put_word(context, address, word):
    """Write a word."""

    def generate(context, builder, signature, args):
        builder.store_atomic(args[1], _at(builder, args[0]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def add_word(context, address, more):
    """Add to a word; what it was."""

    def generate(context, builder, signature, args):
        return builder.atomic_rmw("add", _at(builder, args[0]), args[1], _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def exchanged(context, address, before, after):
    """Write a word if it is what it was before; returns whether it was."""

    def generate(context, builder, signature, args):
        found = builder.cmpxchg(_at(builder, args[0]), args[1], args[2], _ORDER, _ORDER)
        return builder.extract_value(found, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


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


@intrinsic
def nanoseconds(context, clock, kind):
    """What a clock shows.

    Args:
        clock: the address of C's `clock_gettime`.
        kind: the number of the clock.
    """

    def generate(context, builder, signature, args):
        function, kind = args
        number = ir.IntType(32)
        pair = ir.ArrayType(_WORD, 2)
        with builder.goto_entry_block():
            found = builder.alloca(pair)
        type = ir.FunctionType(number, [number, pair.as_pointer()])
        builder.call(builder.inttoptr(function, type.as_pointer()), [builder.trunc(kind, number), found])
        seconds, rest = (builder.extract_value(builder.load(found), at) for at in range(2))
        return builder.add(builder.mul(seconds, ir.Constant(_WORD, 10**9)), rest)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def lock_once(context, function, lock):
    """Wait for a lock of Python's, without Python: `function` is the address of `PyThread_acquire_lock`."""

    def generate(context, builder, signature, args):
        number = ir.IntType(32)
        type = ir.FunctionType(number, [_WORD, number])
        builder.call(builder.inttoptr(args[0], type.as_pointer()), [args[1], ir.Constant(number, 1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def unlock(context, function, lock):
    """Give such a lock back: `function` is the address of `PyThread_release_lock`."""

    def generate(context, builder, signature, args):
        type = ir.FunctionType(ir.VoidType(), [_WORD])
        builder.call(builder.inttoptr(args[0], type.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
