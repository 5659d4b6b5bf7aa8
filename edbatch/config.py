"""What of EdBatch is in use on this machine."""

from __future__ import annotations

import platform
from importlib.metadata import version

from threadpoolctl import threadpool_info

from edbatch.base.table import Table
from edbatch.compiling.cache import cache_folder, works
from edbatch.graph.recorder import IN_C


def show_config() -> None:
    """Print versions, whether recording is in C, and where compiled code is kept.

    Recording is in Python where EdBatch was installed without a C compiler, or under `EDBATCH_PURE_PYTHON=1`: the same
    numbers, errors and reports, but each call takes three times as long to record, or more.

    Example:
        >>> import edbatch as eb
        >>> eb.show_config()
        edbatch    ...
        python     ...
        recording  in ...
    """
    from edbatch import __version__

    blas = [f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"]
    rows = [
        ("edbatch", __version__),
        ("python", f"{platform.python_version()}, {platform.machine()}"),
        *((name, version(name)) for name in ("numpy", "numba")),
        ("blas", ", ".join(sorted(set(blas))) or "unknown"),
        ("recording", "in C" if IN_C else "in Python, which is slower: it was installed without a C compiler"),
        ("compiled code", str(cache_folder()) if works() else "not kept"),
    ]
    print(Table(("", ""), rows, ("left", "left")).plain())
