"""Where an object's classes hold what it does not hold itself, and what they get later."""

from __future__ import annotations

import abc
import weakref
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from edbatch.graph.watch.getters import Get
from edbatch.graph.watch.modules import is_standard

_abc: Any = import_module("_abc")
_HEAP = 1 << 9  # of `__flags__`: the class was made while Python ran, so that it can be changed

#: What Python's syntax and builtins call of a class, by names that no code mentions.
SPECIAL = frozenset(
    f"__{name}__"
    for names in (
        ("call", "len", "bool", "iter", "next", "reversed", "getitem", "contains", "missing", "enter", "exit", "array"),
        ("float", "int", "index", "complex", "round", "abs", "neg", "pos", "invert", "hash", "str", "repr", "format"),
        ("eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"),
        ("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "getattr", "getattribute"),
    )
    for name in names
)


class Registered:
    """A place: the classes that an abstract base class was told (`register`) to take for classes of its own."""

    def __init__(self, kind: abc.ABCMeta) -> None:
        self._kind = weakref.ref(kind)

    def __call__(self, key: Any, missing: Any) -> Any:
        """The classes that are still there; Python has no public way to ask."""
        kind = self._kind()
        if kind is None:
            return missing
        held, *_ = _abc._get_dump(kind)
        return frozenset(one for reference in held if (one := reference()) is not None)


def is_changeable(kind: type) -> bool:
    """Whether a class is a user's, and may be changed."""
    return bool(kind.__flags__ & _HEAP) and not is_standard(kind.__module__)


def holders(kind: type, name: str, every: bool) -> Iterator[type]:
    """The first class that a look-up of a name finds it in; `every`: all, as what `super()` finds is another."""
    for base in kind.__mro__:
        if name in vars(base):
            yield base
            if not every:
                return


def is_data(held: Any) -> bool:
    """Whether what a class holds goes before what an object holds under its name, as a property does."""
    return hasattr(type(held), "__set__") or hasattr(type(held), "__delete__")


def arrivals(kind: type, names: Iterable[str]) -> Get | None:
    """Tells which of the names a class or its bases have got since now, or other bases; None if they never do.

    What a look-up has found is watched where it was found; that a nearer class lacked it, or all of them, is watched
    so: one comparison for each class, however many objects and functions look there.
    """
    order = kind.__mro__
    wanted = frozenset(names)
    known = [(vars(base).keys().isdisjoint, wanted.difference(vars(base))) for base in order if is_changeable(base)]
    if not known:
        return None

    def get(_key: Any, _missing: Any) -> Any:
        if kind.__mro__ is not order and kind.__mro__ != order:
            return tuple(base.__name__ for base in kind.__mro__)
        for lacks, lacking in known:
            if not lacks(lacking):
                return tuple(name for base in kind.__mro__ for name in vars(base) if name in lacking)
        return ()

    return get
