"""How many threads may compute."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from edbatch.base.numbers import checked_integer

#: By default at most so many compute: products are cut into as many parts.
MOST = 4
_GROUPS = Path("/sys/fs/cgroup")


def available() -> int:
    """The cores that this process may use: those it is bound to, but no more than its control group is granted."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *granted(_GROUPS)]))


def granted(folder: Path) -> list[int]:
    """The cores, rounded down, whose time a control group may use; none if nothing is said."""
    try:  # version 2: the quota and the period in one file
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((folder / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return []
    try:
        return [int(quota) // int(period)] if int(quota) > 0 else []
    except (ValueError, ZeroDivisionError):  # "max"
        return []


def asked() -> int:
    """The number of threads that the environment asks for; 0: none.

    Raises:
        EdBatchError: it says something else.
    """
    text = os.environ.get("EDBATCH_THREADS", "").strip()
    if not text:
        return 0
    given = int(text) if text.isdecimal() else text
    return checked_integer("the environment variable EDBATCH_THREADS", "threads", given)


def default() -> int:
    """The number of threads where nobody asks for one.

    Processes that `multiprocessing` has started share the cores with their like, which compute at the same time.
    """
    module = sys.modules.get("multiprocessing.process")
    is_worker = module is not None and module.parent_process() is not None
    return 1 if is_worker else min(MOST, available())
