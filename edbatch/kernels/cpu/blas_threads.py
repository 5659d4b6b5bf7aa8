"""One thread for BLAS while EdBatch computes.

Batches are many products in a row, most of them small. OpenBLAS shares each among all cores and waits for the slowest:
where another process has one of them, batched was 0.3 to 0.7 times as fast as one sample at a time, with one thread 2.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from edbatch.kernels.cpu.products import gemms, libraries

# Per library, names of the functions that tell and set the number of threads. Those of MKL and OpenMP are the thread's.
_NAMES = {
    "mkl": [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads_Local")],
    "openmp": [("omp_get_max_threads", "omp_set_num_threads")],
    "blis": [("bli_thread_get_num_threads", "bli_thread_set_num_threads")],
    "openblas": [
        (f"{before}openblas_get_num_threads{after}", f"{before}openblas_set_num_threads{after}")
        for before in ("", "scipy_")
        for after in ("", "64_", "_64")
    ],
}


class Control(NamedTuple):
    """The number of threads of a library."""

    get: Callable[[], int]
    set: Callable[[int], Any]


def blas_kernels() -> str:
    """The BLAS that computes, with its version and kernels: they decide the last bits of matrix products."""
    used = [library for library in libraries() if library.internal_api == "openblas"][:1] or libraries()  # see `gemms`
    told = [library.info() for library in used]
    names = {
        " ".join(str(of[key]) for key in ("internal_api", "version", "architecture") if of.get(key)) for of in told
    }
    return ", ".join(sorted(names))


@cache
def controls() -> list[Control]:
    """Of every BLAS that is loaded when EdBatch first computes."""
    gemms()  # which may load one
    found = []
    for library in libraries():
        openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
        for names in _NAMES.get("openmp" if openmp else library.internal_api, ()):
            get, set_ = (getattr(library.dynlib, name, None) for name in names)
            if get and set_:
                found.append(Control(get, set_))
                break
    return found
