"""NVIDIA's run-time compiler, from a wheel of CUDA 12 or 13: needs neither a GPU nor a driver."""

import ctypes
import re
from functools import cache
from importlib.metadata import distributions
from typing import NamedTuple

#: As CuPy gives them, ours and its own.
OPTIONS = ["--std=c++17", "--fmad=false", "-ftz=true", "--device-as-default-execution-space"]


@cache
def library():
    """libnvrtc: that of the test extra, or the one that CuPy for CUDA 13 came with."""
    wheels = [*distributions(name="nvidia-cuda-nvrtc-cu12"), *distributions(name="nvidia-cuda-nvrtc")]
    path = next(f for f in wheels[0].files or () if f.match("libnvrtc.so.*") or f.match("nvrtc64_*_0.dll"))
    return ctypes.CDLL(str(path.locate()))


def check(result):
    if result != 0:
        describe = library().nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        raise RuntimeError(describe(result).decode())


def supported():
    """Compute capabilities that this NVRTC compiles for: 90 is sm_90."""
    count = ctypes.c_int()
    check(library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    capabilities = (ctypes.c_int * count.value)()
    check(library().nvrtcGetSupportedArchs(capabilities))
    return list(capabilities)


def compile_for(capability, source):
    """The PTX and the machine code (cubin) of a source; RuntimeError with the log where it has errors or warnings."""
    return compiled(capability, source)[:2]


class Resources(NamedTuple):
    """What a thread of a kernel needs; `shared`: its block. In bytes, but for registers."""

    registers: int
    stack: int
    spilled: int
    shared: int


def resources(capability, source):
    """By the names of a source's kernels."""
    *_, log = compiled(capability, source, "--ptxas-options=-v")
    found = {}
    for part in log.split("Compiling entry function ")[1:]:
        registers, stack, stores, loads, shared = (
            int(number[1]) if (number := re.search(pattern, part)) else 0
            for pattern in (
                r"Used (\d+) registers", r"(\d+) bytes stack", r"(\d+) bytes spill s", r"(\d+) bytes spill l",
                r"(\d+) bytes smem",
            )
        )  # fmt: skip
        found[re.match(r"'(\w+)'", part)[1]] = Resources(registers, stack, stores + loads, shared)
    return found


def compiled(capability, source, *options):
    """PTX, machine code, and what the compiler says."""
    program = ctypes.c_void_p()
    check(library().nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        given = [option.encode() for option in (f"--gpu-architecture=sm_{capability}", *OPTIONS, *options)]
        result = library().nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
        log = read(program, "ProgramLog").rstrip(b"\0").decode()
        if result != 0 or "kernel.cu(" in log:  # it also warns that it will not know old GPUs for ever
            raise RuntimeError(f"{log}\n{source}")
        return read(program, "PTX").rstrip(b"\0").decode(), read(program, "CUBIN"), log
    finally:
        check(library().nvrtcDestroyProgram(ctypes.byref(program)))


def read(program, what):
    size = ctypes.c_size_t()
    check(getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(getattr(library(), f"nvrtcGet{what}")(program, text))
    return text.raw
