"""Functions that are written as LLVM code, and what does the same in Python, for loops that are interpreted."""

# mypy: disable-error-code="no-untyped-call,import-untyped"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
from numba.core.extending import _Intrinsic


class Intrinsic(_Intrinsic):  # type: ignore[misc]
    """Of Numba, and a function that does the same in Python, for loops that are interpreted."""

    python: Callable | None = None

    def __call__(self, *args: Any) -> Any:
        """In Python."""
        return super().__call__(*args) if self.python is None else self.python(*args)


def intrinsic(function: Any = None, *, python: Callable | None = None) -> Any:
    """`numba.extending.intrinsic`, whose result is called without the typing context that the function takes.

    Args:
        python: what does the same in Python, if anything does.
    """
    if function is None:
        return lambda function: intrinsic(function, python=python)
    found = Intrinsic(function.__name__, function)
    found.python = python
    found._register()
    return found
