"""Modules whose functions a trace does not look into, or not as strictly."""

from __future__ import annotations

import functools
import sys

# Of these, what runs and what they hold do not count: they compute the same of the same.
_OURS = [
    "base", "compiling", "graph", "kernels", "runtime", "memory", "policy", "devices", "errors", "vertices",
]  # fmt: skip
_PURE = ("numpy", "msgspec", *(f"edbatch.{name}" for name in _OURS))


@functools.lru_cache(1000)
def is_pure(module: str) -> bool:
    """Whether a module is one of those that compute the same of the same."""
    return any(module == one or module.startswith(f"{one}.") for one in _PURE) or module == "edbatch"


def is_standard(module: str) -> bool:
    """Whether a module is of Python's own library."""
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
