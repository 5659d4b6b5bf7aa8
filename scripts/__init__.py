"""Benchmarks, checks of a GPU, and training scripts: run from the root of the repository.

    python -m scripts.bench.core --rounds 5

`bench` measures, `dynet` is what DyNet runs, `gpu` checks and measures a GPU, `train` trains on real data.
What the environment says is settled here, before any of them loads NumPy.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent

# One thread, of BLAS and of EdBatch, unless a script asks for more: two of a BLAS on a busy machine can be 100 times
# slower, and processor time is that of one thread. And no pinned instruction set: it would halve the
# matrix products, and flatter everything that is divided by them.
UNPINNED = dict(os.environ)
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "EDBATCH_THREADS"):
    UNPINNED.pop(_name, None)
    os.environ.pop(_name, None)
    if _name.endswith("THREADS"):
        os.environ[_name] = "1"


def data_folder() -> Path | None:
    """The folder that EDBATCH_DATA names, if there is one."""
    folder = os.environ.get("EDBATCH_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None
