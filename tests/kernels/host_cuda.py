"""CUDA kernels on the CPU, one thread after the other, where there is a C++ compiler."""

import ctypes
import itertools
import shutil
import subprocess

COMPILER = shutil.which("g++") or shutil.which("clang++")

PRELUDE = """
#include <math.h>
#define __global__
#define __device__
struct Three { unsigned x, y, z; };
extern "C" { Three blockIdx, blockDim, gridDim, threadIdx; }
extern "C" float library_exp(float x) { return expf(x); }
extern "C" float library_tanh(float x) { return tanhf(x); }
"""
# IEEE arithmetic as written: no fused multiply-adds, no functions evaluated by the compiler.
OPTIONS = ["-O1", "-ffp-contract=off", "-fno-builtin"]
OPTIONS += ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-variable"]


class Three(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


def load(source, folder):
    """The library that a kernel's source makes; `folder` is where it is built."""
    path = folder / f"kernel{len(list(folder.iterdir()))}.so"
    command = [COMPILER, *OPTIONS, "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    done = subprocess.run(command, input=PRELUDE + source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + source
    library = ctypes.CDLL(str(path))
    library.kernel.restype = None
    return library


def launch(library, n, d, places, grid=(1, 1), block=(1, 1), threads=None):
    """Run a kernel; a place is (address of its first row, distance between rows in entries).

    Args:
        grid, block: as in CUDA, (x, y).
        threads: those to run, ((block x, thread x), (block y, thread y)); None for all.
    """
    arguments = [ctypes.c_longlong(n), ctypes.c_longlong(d)]
    for address, stride in places:
        arguments += [ctypes.c_void_p(address), ctypes.c_longlong(stride)]
    block_index, block_size, grid_size, thread_index = (
        Three.in_dll(library, name) for name in ("blockIdx", "blockDim", "gridDim", "threadIdx")
    )
    grid_size.x, grid_size.y = grid
    block_size.x, block_size.y = block
    if threads is None:
        x, y = (itertools.product(range(grid[axis]), range(block[axis])) for axis in (0, 1))
        threads = itertools.product(x, y)
    for (block_index.x, thread_index.x), (block_index.y, thread_index.y) in threads:
        library.kernel(*arguments)
