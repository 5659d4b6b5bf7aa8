"""Generated Python for Numba: written to disk, so that what is compiled of it is kept for later processes."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from edbatch.errors import EdBatchError
from edbatch.files import write_atomically


def cache_folder() -> Path:
    """Where generated kernels and their compiled code are kept: `edbatch` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(root or Path.home() / ".cache") / "edbatch" / "kernels"


@cache
def module_of(source: str) -> ModuleType:
    """The module that a source makes; functions with Numba's `cache=True` are compiled once for all processes."""
    name = "edbatch_kernel_" + hashlib.sha256(source.encode()).hexdigest()[:20]
    path = cache_folder() / f"{name}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomically(path, source)
    except (OSError, EdBatchError):  # a home that cannot be written: compile anew in every process
        path = Path(tempfile.mkdtemp(prefix="edbatch-")) / path.name
        write_atomically(path, source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
