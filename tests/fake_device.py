"""A device in plain NumPy, as literal as can be: all that a device must have, and nothing that makes it fast.

Its memory is the process's, as one array of all the entries there are: what tables say of addresses is taken by its
word. Kernels are not compiled, but read, instruction by instruction; and the interpreter of programs, which other
devices compile, is run by Python.
"""

from contextlib import contextmanager, nullcontext
from functools import cache
from types import SimpleNamespace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from edbatch.compiling import compiled
from edbatch.kernels.backend import Lists
from edbatch.kernels.interpreter import Emitter, interpreter
from edbatch.kernels.language.given import PLACE, given_of
from edbatch.kernels.tables import Listed, Rows, adding, at_index, operand_rows
from tests.kernels.language import interpreter as language

FIRST = 64  # NumPy takes an array that begins at address 0 for none
KERNELS = []  # a handle is a position in it


@contextmanager
def in_python():
    """In its block, small functions are interpreted; what they close over may be any functions of Python."""
    token = compiled.interpreting.set(True)
    try:
        with np.errstate(over="ignore"):  # compiled integers wrap around in silence
            yield
    finally:
        compiled.interpreting.reset(token)


@cache
def memory(dtype):
    """All entries of a dtype, from address FIRST on."""
    dtype = np.dtype(dtype)
    all = {"version": 3, "shape": (2**47 // dtype.itemsize,), "typestr": dtype.str, "data": (FIRST, False)}
    return np.asarray(SimpleNamespace(__array_interface__=all))


def entries(address, count, dtype):
    """So many entries from an address on."""
    begin = (int(address) - FIRST) // np.dtype(dtype).itemsize
    return memory(dtype)[begin : begin + int(count)]


def addresses(rows, listed, n, integer=np.int32):
    """Where each of n rows begins; `listed`: the address of the list of them, or 0."""
    which = entries(listed, n, integer).astype(np.int64) if listed else np.arange(n)
    return rows.address + which * rows.stride


# What is done with a step: see `Emitter`; the device has no table of its own


def run(handle, given, n):
    """Run a kernel for n rows, given what kernels are given."""
    kernel = KERNELS[handle]
    layout, dtype, integer = given_of(kernel), np.dtype(kernel.dtype), np.dtype(np.int32)
    sizes, offsets = given[: kernel.axes].tolist(), None
    if kernel.list_axis is not None:
        offsets = entries(sizes[kernel.list_axis], n + 1, integer)
    places = []
    for place, words in zip(kernel.places, given[layout.places : layout.strides].reshape(-1, PLACE), strict=True):
        begins = addresses(Rows(words[0], words[1], 0), words[2], offsets[-1] if place.elements else n, integer)
        places.append(language.Rows(memory(dtype), 0, 1, (begins - FIRST) // dtype.itemsize))
    integers = [entries(address, n, integer) for address in given[layout.integers :]]
    strides, columns = given[layout.strides : layout.columns], given[layout.columns : layout.integers]
    language.interpret(kernel, language.Call(n, sizes, places, strides.tolist(), integers, columns, offsets))


def matrix(seen, rows, columns, itemsize):
    begin = entries(seen.address, 1, f"f{itemsize}")
    strides = (seen.distance * itemsize, itemsize)
    return as_strided(begin, (columns, rows), strides).T if seen.turned else as_strided(begin, (rows, columns), strides)


def multiply(device, itemsize, sizes, x, w, out, add):
    m, n, k = sizes
    result = matrix(out, m, n, itemsize)
    result[...] = (result if add else 0) + matrix(x, m, k, itemsize) @ matrix(w, k, n, itemsize)


def multiply_each(device, itemsize, calls, sizes, a, b, out):
    for i in range(calls):
        of_call = (one.first._replace(address=one.first.address + i * one.stride) for one in (a, b, out))
        multiply(device, itemsize, sizes, *of_call, 0)


def run_step(device, kernel, step, given, integers):
    run(kernel, given[1:], int(given[0]))


def move(device, moves, count, source, target, n):
    there, here = (addresses(*one, n) for one in (source, target))
    for read, written in zip(there, here, strict=True):
        entries(written, target.rows.width, np.uint8)[:] = entries(read, target.rows.width, np.uint8)
    return count


def flush(device, moves, count):
    """All moves were done at once."""


def each_entry(device, kernel, n, count, given):
    run(kernel, given[1:], int(n))


def add_groups(device, task, one, sources, rows):
    """All rows are added to one."""
    operand = sources.operands[one["operand"]]
    offsets = np.array([0, one["n"]], np.int32)
    source = Listed(rows, at_index(sources.indices, one["offsets"]))
    target = Listed(Rows(operand_rows(operand, 0, sources.memory).address, 0, 0), 0)
    kernel, _, given = adding(task, sources.memory, operand["window"], 1, source, target, offsets.ctypes.data)
    run(kernel, given[1:], 1)


run_batches = interpreter(Emitter(multiply, multiply_each, run_step, each_entry, move, flush, add_groups, notes=False))


class FakeBackend:
    """See `edbatch.kernels.backend.Backend`."""

    adds_in_groups, block_bytes = False, 200  # blocks are of a few calls
    to_host = staticmethod(np.copy)
    address = staticmethod(lambda array: array.ctypes.data)
    active = staticmethod(lambda options=None: nullcontext())
    allocate = staticmethod(lambda shape, dtype, order="C", zeros=True: np.full(shape, 0 if zeros else 7, dtype, order))

    @staticmethod
    def from_host(array, order="C", out=None):
        if out is None:
            return np.array(array, order=order)
        out[...] = array
        return out

    @staticmethod
    def array_at(address, shape, strides, dtype):
        return as_strided(entries(address, 1, dtype), shape, strides)

    def shared(self, array):
        return np.asarray(array)

    def handles(self, wanted):
        KERNELS.extend(wanted)
        return list(range(len(KERNELS) - len(wanted), len(KERNELS)))

    @staticmethod
    def call(handle, n, size, given):
        run(handle, given[1:], n)

    def squares(self, arrays):
        return np.array([np.square(x, dtype=np.float64).sum() for x in arrays])

    @staticmethod
    def lists(plan, integers, first=0, first_integer=0):
        indices, integers = plan.tables.indices.copy(), integers.copy()
        address = integers.ctypes.data - 4 * first_integer
        return Lists(indices.ctypes.data, address, (indices, integers))

    def run_batches(self, first, stop, plan, lists, memory, programs, scratch):
        programs = programs.directory  # held: what is called may run graphs, for which it is replaced
        directories = plan.entries, memory.entries, programs.entries
        with in_python():
            run_batches(np.zeros(0), first, stop, lists.indices, lists.integers, scratch, *directories)

    def add_all(self, rows, whole):
        whole += rows.sum(axis=0)

    def add_product(self, left, right, whole, fresh):
        whole += left.T @ right

    def sum_equal(self, indices, rows):
        found, to = np.unique(indices, return_inverse=True)
        total = np.zeros((len(found), *rows.shape[1:]), rows.dtype)
        np.add.at(total, to, rows)
        return found.astype(np.int64), total


def open_backend(number):
    return FakeBackend()
