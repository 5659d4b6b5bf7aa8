"""Functions that are written as LLVM code, and what does the same in Python, for loops that are interpreted."""

# mypy: disable-error-code="no-untyped-call,import-untyped"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
from numba.core.extending import _Intrinsic


class Intrinsic(_Intrinsic):  # type: ignore[misc]
    """An intrinsic of Numba that can be called in Python, too."""

    python: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call what does the same in Python."""
        return self.python(*args)


def intrinsic(function: Any = None, *, python: Callable | None = None) -> Any:
    """Return `numba.extending.intrinsic` of a function, and `python` for who calls it in Python."""
    if function is None:
        return lambda function: intrinsic(function, python=python)
    found = Intrinsic(function.__name__, function)
    found.python = python
    found._register()
    return found
