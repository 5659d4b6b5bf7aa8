"""The machine that something was measured on."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info


def machine() -> dict[str, Any]:
    """Processor, cores, versions, and what the BLAS says of itself."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":")[1].strip() if models else name
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    blas = [f"{pool['internal_api']} {pool['version']}, {pool.get('architecture')}, {pool['num_threads']} thread(s)"
            for pool in threadpool_info() if pool["user_api"] == "blas"]  # fmt: skip
    found = {"processor": name, "cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    with suppress(PackageNotFoundError):
        found["torch"] = version("torch")
    return found | {"blas": blas}
