"""What of EdBatch is in use on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from edbatch.base.lazy import LazyModule
from edbatch.base.table import Table
from edbatch.graph.recorder import IN_C

cache = LazyModule("edbatch.compiling.cache")
threadpoolctl = LazyModule("threadpoolctl")


def show_config() -> None:
    """Print versions, whether recording is in C, and where compiled code is kept.

    Recording is in Python where EdBatch was installed without a C compiler, or runs from a folder of sources that was
    not installed by `pip install -e .`, or under `EDBATCH_PURE_PYTHON=1`: the same numbers, errors and reports, but
    each call takes three times as long to record, or more, and a Ctrl-C just as a `with` block begins or ends may leave
    it open.

    Example:
        >>> import edbatch as eb
        >>> eb.show_config()
        edbatch    ...
        python     ...
        recording  in ...
    """
    import platform  # which take a tenth of the time of `import edbatch`
    from importlib.metadata import version

    from edbatch import __version__

    pools = threadpoolctl.threadpool_info()
    blas = [f"{pool['internal_api']} {pool['version']}" for pool in pools if pool["user_api"] == "blas"]
    rows = [
        ("edbatch", __version__),
        ("python", f"{platform.python_version()}, {platform.machine()}"),
        *((name, version(name)) for name in ("numpy", "numba")),
        ("blas", ", ".join(sorted(set(blas))) or "unknown"),
        ("recording", "in C" if IN_C else f"in Python, which is slower: {_why_in_python()}"),
        ("compiled code", str(cache.cache_folder()) if cache.works() else "not kept"),
    ]
    print(Table(("", ""), rows, ("left", "left")).plain())


def _why_in_python() -> str:
    if os.environ.get("EDBATCH_PURE_PYTHON") == "1":
        return "EDBATCH_PURE_PYTHON=1"
    folder = Path(__file__).parent
    return f"{folder} has no C extension, as without a C compiler; in a folder of sources, pip install -e . builds it"
