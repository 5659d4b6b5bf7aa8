"""Benchmarks, checks of a GPU, and training scripts: run from the root of the repository.

    python -m scripts.bench.core --rounds 5

`bench` measures, `dynet` is what DyNet runs, `gpu` checks and measures a GPU, `train` trains on real data. What is run
this way begins again, before NumPy is loaded, in an environment where nothing changes what is measured: see `measured`.
To import from here changes nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
_OF_BLAS = ("OPENBLAS_", "OMP_", "MKL_")


def unpinned(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without what pins threads, or instructions and caches that BLAS takes the machine to have.

    A pinned instruction set would halve the matrix products, and flatter everything that is divided by them.
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(_OF_BLAS) and name != "EDBATCH_THREADS"
    }


def measured(environment: Mapping[str, str]) -> dict[str, str]:
    """The same with one thread, of BLAS and of EdBatch, unless a script asks for more.

    Two of a BLAS on a busy machine can be 100 times slower, and processor time is that of one thread.
    """
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "EDBATCH_THREADS")
    return unpinned(environment) | dict.fromkeys(names, "1")


def data_folder() -> Path | None:
    """The folder that EDBATCH_DATA names, if there is one."""
    folder = os.environ.get("EDBATCH_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def _begin_again() -> None:
    """Run the same command in the environment that is measured in, in the place of this process."""
    environment = measured(os.environ)
    if environment == os.environ:
        return
    command = [sys.executable, *sys.orig_argv[1:]]
    if sys.platform == "win32":  # where nothing takes the place of a process
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    os.execve(command[0], command, environment)


# While Python looks for the module that `-m` names, this is the first argument.
if sys.argv[:1] == ["-m"] and any("scripts." in argument for argument in sys.orig_argv):
    _begin_again()
