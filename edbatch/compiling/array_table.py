"""Tables that compiled code finds by a directory of their addresses: one argument, however many they are.

Of every array that Python gives it, Numba finds out the type and counts a reference: 0.05 us each, 0.2 for one of
records. A run reads forty, most of which lie where they lay at the last one.
"""

# mypy: disable-error-code="import-untyped,no-untyped-def,no-untyped-call"

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from edbatch.base.records import WORD
from edbatch.compiling.numba_parts import intrinsic

T = TypeVar("T", bound=Sequence[np.ndarray])
T_co = TypeVar("T_co", bound=Sequence[np.ndarray], covariant=True)

INT32, INT64, BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.bool_)
_from_buffer = ctypes.c_char.from_buffer


class HasTables(Protocol[T_co]):
    """What compiled code is told the tables of."""

    @property
    def entries(self) -> np.ndarray:
        """[tables, 2]: the address and the length of each; what compiled code is given, see `reader`."""

    @property
    def tables(self) -> T_co:
        """Those in use."""


class ArrayTable(Generic[T]):
    """Tables, and the directory of them.

    Args:
        tables: of the host, one-dimensional and contiguous; they are kept as long as this is.

    Attributes:
        tables: all of them.
        entries: [tables, 2], the address and the length of each; what compiled code is given, see `reader`.
    """

    __slots__ = ("entries", "tables")

    def __init__(self, tables: T) -> None:
        self.tables = tables
        self.entries = np.array([(_address(array), len(array)) for array in tables], WORD)


def _address(array: np.ndarray) -> int:
    if not len(array):
        return 0  # of what nobody reads; `array.ctypes` takes 10 us
    memory: Any = array
    try:
        return ctypes.addressof(_from_buffer(memory))  # takes half the time of `array.ctypes`
    except (TypeError, ValueError):  # it may not be written to
        if not array.flags.c_contiguous:
            raise ValueError("a table for compiled code: expected an array in one piece") from None
        return int(array.ctypes.data)


def _array_at(address: int, length: int, dtype: np.dtype) -> np.ndarray:
    """Return the array of so many entries at an address; others hold its memory."""
    size = int(length) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(int(address)) if size else bytearray()
    return np.frombuffer(memory, dtype)


def _emit_array(context, builder, kind, address, length):
    """Write the same as LLVM code."""
    entry = context.get_data_type(kind.dtype)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(entry))
    made = make_array(kind)(context, builder)
    shape, strides = (cgutils.pack_array(builder, [size]) for size in (length, itemsize))
    data = builder.inttoptr(address, entry.as_pointer())
    populate_array(made, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return made._getvalue()


def reader(form: Any, *dtypes: np.dtype) -> Any:
    """Make a function that returns the first tables of a directory, of these dtypes, as a named tuple of this form."""

    def in_python(entries: np.ndarray) -> Any:
        return form(*(_array_at(at, n, dtype) for (at, n), dtype in zip(entries, dtypes, strict=False)))

    @intrinsic(python=in_python)
    def read(context, entries):
        kinds = [types.Array(from_dtype(dtype), 1, "C", aligned=True) for dtype in dtypes]

        def generate(context, builder, signature, args):
            data = make_array(entries)(context, builder, args[0]).data
            words = builder.bitcast(data, context.get_value_type(types.CPointer(types.int64)))
            found = [builder.load(cgutils.gep(builder, words, at)) for at in range(2 * len(kinds))]
            pairs = zip(kinds, found[::2], found[1::2], strict=True)
            arrays = [_emit_array(context, builder, kind, *pair) for kind, *pair in pairs]
            return context.make_tuple(builder, signature.return_type, arrays)

        return types.NamedTuple(kinds, form)(entries), generate

    return read
