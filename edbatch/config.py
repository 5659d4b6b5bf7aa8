"""What of EdBatch is in use on this machine."""

from __future__ import annotations

from edbatch.base.later import Later
from edbatch.base.table import Table
from edbatch.graph.recorder import IN_C

cache = Later("edbatch.compiling.cache")
threadpoolctl = Later("threadpoolctl")


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
        ("recording", "in C" if IN_C else "in Python, which is slower: it was installed without a C compiler"),
        ("compiled code", str(cache.cache_folder()) if cache.works() else "not kept"),
    ]
    print(Table(("", ""), rows, ("left", "left")).plain())
