"""What Numba lacks: intrinsics that Python runs, too, and named tuples that come back without a line of Python.

Interrupts come at lines of Python. Where Numba's own code asks it for a class, it takes what an interrupt left in its
place for one, and may crash.
"""

# mypy: disable-error-code="no-untyped-call,import-untyped"

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
from numba.core import boxing, pythonapi, serialize, types
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


def _named_tuple(kind: Any, value: Any, c: Any) -> Any:
    """The Python object that a named tuple becomes."""
    if kind.instance_class.__bases__ != (tuple,):  # it may have a `__new__` of its own
        return boxing.box_namedtuple(kind, value, c)
    new, cls = (
        c.env_manager.read_const(c.env_manager.add_const(constant)) for constant in (tuple.__new__, kind.instance_class)
    )
    items = boxing.box_tuple(kind, value, c)
    args = c.pyapi.tuple_pack([cls, items])
    made = c.pyapi.call(new, args)
    c.pyapi.decref(args)
    c.pyapi.decref(items)
    return made


for _kind in (types.NamedTuple, types.NamedUniTuple):
    pythonapi._boxers.functions[_kind] = _named_tuple

# Python's cache is written in C: from the second time on, a class is found there.
serialize._numba_unpickle = cache(serialize._numba_unpickle)
