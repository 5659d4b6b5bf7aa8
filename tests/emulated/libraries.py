"""CUDA source as libraries for the CPU, which are built once for all processes.

A generated kernel is found by its text, whatever it was compiled with; those that are new to a process are compiled
together.
"""

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

COMPILER = shutil.which("g++") or shutil.which("clang++")
with_checks = pytest.mark.skipif(
    platform.system() != "Linux" or "g++" not in str(COMPILER), reason="no g++ on this machine"
)
with_cpp = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

HERE = Path(__file__).parent
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unknown-pragmas",
    "-Wno-unused-variable",
    "-Wno-unused-function",
    "-Wno-tautological-compare",
]
# IEEE arithmetic as written: no fused multiply-adds, no functions evaluated by the compiler. Fibers are switched by
# longjmp, which _FORTIFY_SOURCE refuses.
OPTIONS = ["-std=c++17", "-shared", "-fPIC", "-ffp-contract=off", "-fno-builtin", "-U_FORTIFY_SOURCE", *WARNINGS]
# Modules may define the same names.
OPTIONS += [] if platform.system() == "Darwin" else ["-Wl,-Bsymbolic"]
# Reads and writes call functions of the core, and the compiler's own library is not linked.
CHECKING = ["-fsanitize=thread,bounds", "-nodefaultlibs", "-lm", "-lc", "-g1", "-Wcast-qual"]
#: Whether kernels are compiled so; for all tests by `--check-kernels`.
checks = False

_GENERATED = re.compile(r'^extern "C" __global__ void (\w+)\((?=const long long n, const Given<)', re.MULTILINE)


@cache
def folder():
    """Where libraries are kept: this user's own."""
    path = Path(tempfile.gettempdir()) / f"edbatch-emulated-{getattr(os, 'getuid', int)()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def key_of(*parts):
    """The name of what is made of these."""
    return hashlib.sha256(repr((COMPILER, OPTIONS, *parts)).encode()).hexdigest()[:32]


def built(source, *options):
    """The path of the library that C++ source makes; it is built once for all processes."""
    options = [*OPTIONS, *options]
    if "clang" not in COMPILER and platform.system() != "Darwin":
        options.append("-fno-gnu-unique")  # or two modules would share the shared memory of one name
    path = folder() / f"{key_of(options, source)}.so"
    if platform.system() == "Darwin":
        options.append(f"-Wl,-install_name,{path}")
    if not path.exists():
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".so")
        os.close(descriptor)
        try:
            command = [COMPILER, "-x", "c++", "-", *options, "-o", temporary]
            done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr + source)
            path.with_suffix(".cu").write_text(source.partition('"kernel.cu"\n')[2])  # for `reports`
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    return path


@cache
def core_path():
    """The library of core.cpp, which modules are linked to: its names are seen by them alone."""
    parts = [HERE / f"{name}.cpp" for name in ("checks", "threads", "products", "core")]
    return str(built("".join(f'#line 1 "{part.name}"\n{part.read_text()}' for part in parts), "-O2"))


@cache
def core():
    """The functions of core.cpp."""
    library = ctypes.CDLL(core_path())
    pointer = ctypes.c_void_p
    for name, restype, *argtypes in [
        ("emulated_stream", pointer, ctypes.c_int),
        ("emulated_set_device", ctypes.c_int, ctypes.c_int),
        ("emulated_forget_stream", None, pointer),
        ("emulated_kernel", pointer, ctypes.c_char_p),
        ("emulated_memory", None, pointer, ctypes.c_size_t, ctypes.c_size_t),
        ("emulated_report", ctypes.c_char_p),
        ("emulated_define", None, pointer, pointer),
        ("emulated_begin", pointer, pointer),
        ("emulated_end", None, pointer),
        ("emulated_replay", ctypes.c_int, pointer, pointer),
        ("emulated_forget_work", None, pointer),
        ("emulated_thread", None, pointer, pointer, pointer),
        ("emulated_launch", ctypes.c_int, pointer, *[ctypes.c_uint] * 7, pointer, pointer, pointer),
    ]:
        function = library[name]
        setattr(library, name, function)
        function.restype, function.argtypes = restype, argtypes
    return library


def module(source, names):
    """The library of the kernels of a source."""
    return built(header() + source + exported(names), *options())


def exported(names):
    """What makes kernels of a source found by their names."""
    return "".join(f"\nEMULATED({name})" for name in names)


def linked():
    """The options that link a module to the core."""
    return "-x", "none", core_path()


def options():
    """Of modules. -O0 takes a third of the time of -O1, and tests launch few threads."""
    return (*linked(), "-O0", *(CHECKING if checks else []))


@cache
def header():
    """What CUDA C++ takes for granted."""
    return (HERE / "kernels.h").read_text()


def address_in(path, name):
    """Where the record of a kernel is, in a module."""
    return ctypes.addressof(ctypes.c_char.in_dll(_library(path), f"emulated_{name}"))


_library = cache(ctypes.CDLL)


def compiled(source, names):
    """Where the kernels of a source are."""
    path = str(module(source, names))
    return [address_in(path, name) for name in names]


def generated(source, names):
    """What comes before all kernels, and the text of each without its name; None if some are written by hand."""
    head, *parts = _GENERATED.split(source)
    return [(head, body) for body in parts[1::2]] if parts[::2] == list(names) else None


def compiled_together(kernels):
    """Where generated kernels are, by what `generated` gives; each is compiled once for all processes."""
    keys = {kernel: key_of(options(), header(), kernel) for kernel in kernels}
    new = {kernel: f"kernel_{key}" for kernel, key in keys.items() if not (folder() / key).exists()}
    for head in {head for head, _ in new}:
        named = {name: body for (first, body), name in new.items() if first == head}
        bodies = (f'extern "C" __global__ void {name}({body}' for name, body in named.items())
        path = module(head + "".join(bodies), named)
        for name in named:
            link = folder() / f"{name}.{os.getpid()}"
            link.symlink_to(path.name)
            os.replace(link, folder() / name.removeprefix("kernel_"))
    return {kernel: address_in(os.path.realpath(folder() / key), f"kernel_{key}") for kernel, key in keys.items()}


def reports():
    """What has been found wrong with kernels since this was last called."""
    if not core.cache_info().currsize:
        return []
    found = []
    for text in iter(core().emulated_report, None):
        what, library, offset = text.decode().split("\t")
        if library:
            command = ["addr2line", "-i", "-e", library, offset]
            line = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            number = re.search(r"kernel.cu:(\d+)", line)
            what += f", at {Path(library).with_suffix('.cu')}:{number[1] if number else '?'}"
        found.append(what)
    return found
