"""Whether a machine has what a GPU needs; if not, one sentence that says what is missing and how to get it."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from edbatch.errors import EdBatchError

#: NVIDIA's driver, as a library: it comes with the driver and nothing else.
DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

LEAST_VERSION = 12000


def cuda_driver() -> ctypes.CDLL:
    """NVIDIA's driver; OSError without one."""
    return ctypes.CDLL(DRIVER_LIBRARY)


def driver_version() -> int:
    """The newest CUDA that the driver runs, 12040 for 12.4; 0 without a driver."""
    try:
        driver = cuda_driver()
    except OSError:
        return 0
    version = ctypes.c_int()
    # The only function that needs no cuInit, which would need a GPU. A stub of the toolkit returns an error.
    return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0


def extra_for(version: int) -> str:
    """What to install for a driver: the extra whose CuPy is built for the newest CUDA that it runs."""
    return f"pip install 'edbatch[cuda{13 if version >= 13000 else 12}]'"


def check_driver(device: str) -> int:
    """The driver's version.

    Raises:
        EdBatchError: there is no driver, or one that is too old.
    """
    version = driver_version()
    if not version:
        raise EdBatchError(
            f"{device}: no NVIDIA driver was found ({DRIVER_LIBRARY} cannot be loaded): install the driver, then CuPy "
            f"by `{extra_for(LEAST_VERSION)}`, or [cuda13] for CUDA 13"
        )
    if version < LEAST_VERSION:
        raise EdBatchError(
            f"{device}: NVIDIA's driver runs CUDA {_dotted(version)} at most, 12.0 is needed: update the driver"
        )
    return version


def not_importable(device: str, version: int, error: ImportError) -> EdBatchError:
    """Why CuPy is not there."""
    install = extra_for(version)
    if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
        return EdBatchError(f"{device}: CuPy is not installed: `{install}`")
    reason = next((line.strip() for line in str(error).splitlines() if line.strip(" =\t")), type(error).__name__)
    return EdBatchError(f"{device}: CuPy cannot be imported ({reason}): uninstall it, then `{install}`")


def check_device(device: str, version: int, cupy: Any, number: int) -> None:
    """Whether the GPU of this number is there.

    Raises:
        EdBatchError: it is not, or CuPy is built for a newer CUDA than the driver runs.
    """
    runtime = cupy.cuda.runtime
    built = runtime.runtimeGetVersion()
    if built // 1000 > version // 1000:
        raise EdBatchError(
            f"{device}: CuPy {cupy.__version__} is built for CUDA {built // 1000}, NVIDIA's driver runs "
            f"{_dotted(version)} at most: uninstall this CuPy, then `{extra_for(version)}`"
        )
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise EdBatchError(f"{device}: no GPU was found ({error}){_hidden()}") from error
    if not 0 <= number < count:
        there = {0: "no GPU was found", 1: "only 1 GPU was found, cuda:0"}
        raise EdBatchError(
            f"{device}: {there.get(count, f'only {count} GPUs were found, cuda:0 to cuda:{count - 1}')}{_hidden()}"
        )


def not_in_toolkit(device: str, cupy: Any, part: str, error: Exception) -> EdBatchError:
    """Why one of the parts of NVIDIA's toolkit that CuPy needs, and does not contain, is not there."""
    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    return EdBatchError(
        f"{device}: {part} of CUDA {major} cannot be found ({str(error).strip().splitlines()[0]}): install NVIDIA's "
        f"CUDA toolkit {major}, or its wheels by `pip install 'edbatch[cuda{major}]'`"
    )


def _hidden() -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if visible is None else f", where CUDA_VISIBLE_DEVICES is {visible!r}"


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
