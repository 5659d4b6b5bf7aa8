"""Have CuPy, as it was installed, run on a CUDA that is faked below it (fake.cpp): everything but the GPU is real.

CuPy holds CUDA's runtime as a part of itself; functions of that are overwritten in memory. NVRTC is NVIDIA's and makes
machine code, which is thrown away: what a kernel does, of ours or of CuPy's own, the emulator computes from its source.
"""

import ctypes
import importlib
import mmap
import os
import re
import subprocess
from functools import cache
from pathlib import Path

from tests.emulated import libraries
from tests.emulated.libraries import address_in, built, compiled, compiled_together, exported, generated, header, linked

HERE = Path(__file__).parent
#: Of the runtime's functions those that need no GPU.
KEPT = {"cudaGetErrorName", "cudaGetErrorString", "cudaRuntimeGetVersion"}
#: Functions of the driver that CuPy looks for, and that are not faked.
OF_DRIVER = [
    "cuCtxCreate_v2", "cuCtxDestroy_v2", "cuCtxGetDevice", "cuCtxSetCurrent", "cuFuncGetAttribute",
    "cuFuncSetAttribute", "cuLaunchCooperativeKernel", "cuLinkAddData_v2", "cuLinkAddFile_v2", "cuLinkComplete",
    "cuLinkCreate_v2", "cuLinkDestroy", "cuModuleGetGlobal_v2", "cuModuleLoad",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxPotentialBlockSize", "cuStreamGetCtx",
]  # fmt: skip
#: What CuPy's own kernels are written with, beyond what ours are (kernels.h).
OF_CUPY = """
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#define __host__
#define __forceinline__ inline
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
using std::isfinite; using std::isinf; using std::isnan; using std::max; using std::min; using std::signbit;
"""


def missing():
    """Why it cannot be installed, in words; nothing where it can."""
    if importlib.util.find_spec("cupy_backends") is None:
        return "CuPy is not installed: `pip install cupy-cuda13x`, or 12x, and nvidia-cuda-nvrtc of the same CUDA"
    return "" if libraries.COMPILER else "no C++ compiler on this machine, to fake CUDA"


@cache
def install():
    """Before CuPy is imported; returns the fake's library."""
    os.environ |= {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_ACCELERATORS": ""}
    from cupy_backends.cuda.api import runtime

    major = runtime.runtimeGetVersion() // 1000
    blas = next(Path(runtime.__file__).parents[1].glob("libs/cublas.*"))
    of_runtime = symbols(runtime.__file__)
    wanted = [f"fake_{name}" for name in of_runtime if re.match("cuda[A-Z]", name) and name not in KEPT]
    wanted += [name for name in symbols(blas, "-D") if re.match("cublas[A-Z]", name)] + OF_DRIVER
    source = (HERE / "fake.cpp").read_text()
    lacking = [name for name in wanted if not re.search(rf"\b{name}\(", source)]
    stubs = "".join(f'int {name}() {{ return fake_lacks("{name}"); }}\n' for name in lacking)
    path = built(f'{source}\nextern "C" {{\n{stubs}}}\n', "-O1", "-Wl,-soname,libcuda.so.1", *linked())
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    for name in ("cublasLt", "cublas"):  # they are there already, under the names by which they are looked for
        options = f"-Wl,-soname,lib{name}.so.{major}", "-Wl,--no-as-needed", "-x", "none", str(path)
        ctypes.CDLL(str(built("", *options)), mode=ctypes.RTLD_GLOBAL)
    overwrite(runtime.__file__, of_runtime, library, wanted)
    ctypes.c_int.in_dll(library, "fake_version").value = runtime.runtimeGetVersion()
    library.fake_count.restype = ctypes.c_long
    note_sources(library)
    return library


def symbols(path, *options):
    """Where functions are in a library; those that it takes from others are at 0."""
    lines = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words[-1].partition("@")[0]: int(words[0], 16) if len(words) == 3 else 0 for words in map(str.split, lines)}


def overwrite(path, places, library, wanted):
    """Have functions of CUDA's runtime jump to those that are faked."""
    name = next(name for name in places if name.startswith("PyInit_"))
    begin = ctypes.cast(ctypes.CDLL(path)[name], ctypes.c_void_p).value - places[name]
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for fake in wanted:
        if fake.startswith("fake_"):
            at = begin + places[fake.removeprefix("fake_")]
            target = ctypes.cast(library[fake], ctypes.c_void_p).value
            assert protect(at & -mmap.PAGESIZE, 2 * mmap.PAGESIZE, 7) == 0  # to be read, written and run
            ctypes.memmove(at, b"\x48\xb8" + target.to_bytes(8, "little") + b"\xff\xe0", 12)  # rax = target; jmp rax


def note_sources(library):
    """Have what NVRTC compiles be known to the fake."""
    from cupy.cuda import compiler

    compile = compiler._NVRTCProgram.compile

    def compile_and_note(program, options=(), log_stream=None):
        image, mapping = compile(program, options, log_stream)
        names = re.findall(r'extern "C" __global__ void (?:BLOCK )?(?:__launch_bounds__\(\w+\) )?(\w+)\(', program.src)
        kernels = on_host(program.src, names)
        arrays = (ctypes.c_char_p * len(names))(*map(str.encode, names)), (ctypes.c_void_p * len(names))(*kernels)
        library.fake_image(image, ctypes.c_size_t(len(image)), *arrays, len(names))
        return image, mapping

    compiler._NVRTCProgram.compile = compile_and_note


def on_host(source, names):
    """Where the emulator's records of a source's kernels are."""
    if "own_row()" not in source and names:
        return of_cupy(source, names)
    made = generated(source, names)
    if made is None:
        return compiled(source, names)
    together = compiled_together(dict.fromkeys(made))
    return [together[one] for one in made]


def of_cupy(source, names):
    """One of CuPy's own kernels; parameters may have any size."""
    import cupy

    source = re.sub(r"#include <cupy/(complex.cuh|atomics.cuh|math_constants.h|hip_workaround.cuh)>", "", source)
    start = header().replace("sizeof(P) == 8 ||", "sizeof(P) > 0 ||").replace('#line 1 "kernel.cu"', OF_CUPY)
    include = f"-I{Path(cupy.__file__).parent}/_core/include"
    path = str(built(start + source + exported(names), "-O1", "-w", include, *linked()))
    return [address_in(path, name) for name in names]
