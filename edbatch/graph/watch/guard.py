"""What must be as it was for a trace to be right: compared exactly, by types and bits."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from types import MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from edbatch.base.exact import exact
from edbatch.graph.watch.getters import Get

MISSING: Any = object()  # the value of what is not there

ATOMS = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented))
CONTENTS = (list, tuple, deque, dict, MappingProxyType, set, frozenset, np.ndarray, np.generic, bytearray, array)
SHORT = 8  # entries
WRAPPERS = (MethodType, partial, ReferenceType, slice)


class Read(NamedTuple):
    """A place that was read: where it is, what it is called, and what was there.

    None stands for `get` of the dictionary of the cell's owner, which a guard must not hold.
    """

    get: Get | None
    key: Any
    path: str
    value: Any


class Change(NamedTuple):
    """A place that holds something else than it did.

    Attributes:
        path: what it is called.
        old: what was there, as text; empty if that is long, or an object.
        new: what is there.
    """

    path: str
    old: str
    new: Any

    @property
    def is_number(self) -> bool:
        """Whether there is a number now."""
        return isinstance(self.new, int | float | complex | np.number) and not isinstance(self.new, bool)

    @property
    def now(self) -> str:
        """What is there now, as text."""
        text = "nothing" if self.new is MISSING else repr(self.new)
        return text if len(text) < 60 else f"another {type(self.new).__name__}"


class Same:
    """An object that is equal to itself alone, and that this keeps alive only if it must."""

    __slots__ = ("held", "number")

    def __init__(self, value: Any) -> None:
        self.number = id(value)  # while it is a key, also after the object's end: what has that number then is unequal
        try:
            self.held: Callable[[], Any] = ref(value)
        except TypeError:
            self.held = lambda: value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and (mine := self.held()) is not None and mine is other.held()

    def __hash__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        return repr(self.held())


def token(value: Any) -> Any:
    """Something that is equal to another's if and only if a trace may not tell the values apart.

    Numbers, texts and arrays go by types and bits, containers by what they hold; other objects are what they are: what
    a trace reads of them are places of their own.

    Example:
        >>> token([1, 0.0]) == token([1, 0.0]), token([1]) == token([True]), token(0.0) == token(-0.0)
        (True, False, False)
    """
    kind = value.__class__
    if kind in ATOMS or isinstance(value, np.generic):
        return exact(value)
    if isinstance(value, Enum):
        return Same(value)
    if isinstance(value, np.ndarray):
        holds = tuple(map(token, value.ravel().tolist())) if value.dtype.hasobject else value.tobytes()
        return kind, value.dtype, value.shape, holds
    if isinstance(value, list | tuple | deque):
        return kind, tuple(map(token, value))
    if isinstance(value, dict | MappingProxyType):
        return kind, tuple((token(key), token(part)) for key, part in value.items())
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(token, value))
    if isinstance(value, bytearray | array):
        return kind, bytes(value)
    if kind is slice:
        return kind, token(value.start), token(value.stop), token(value.step)
    if kind is MethodType:
        return kind, Same(value.__self__), Same(value.__func__)
    if isinstance(value, partial):
        return kind, token(value.func), token(value.args), token(value.keywords)
    if isinstance(value, ReferenceType):
        return kind, token(value())
    return Same(value)


class Guard:
    """Whether all that a trace read is as it was then.

    Args:
        reads: the places.
        of: what was traced, for errors.

    Attributes:
        looks: attributes of the owner that every call looks at, so that they may change between two calls.
    """

    def __init__(self, reads: Sequence[Read], of: str = "") -> None:
        self.of = of
        self.looks: frozenset[str] = frozenset()
        self.reads = [Read(get, key, path, token(value)) for get, key, path, value in reads]
        self._old = [_short(value) for _, _, _, value in reads]
        #: Three kinds of places, by how they are compared fastest. What a place holds is kept alive only if it is
        #: a number or the like: an old trace must not keep old parameters.
        self._plain: list[tuple[Get | None, Any, Any]] = []
        self._objects: list[tuple[Get | None, Any, Callable[[], Any]]] = []
        self._deep: list[tuple[Get | None, Any, Any]] = []
        for get, key, _, value in reads:
            if value is MISSING or _cannot_change(value):
                self._plain.append((get, key, value))
            elif isinstance(value, CONTENTS + WRAPPERS):
                self._deep.append((get, key, token(value)))
            else:
                self._objects.append((get, key, Same(value).held))

    def holds(self, own: Get, besides: frozenset[str] = frozenset()) -> bool:
        """Whether nothing has changed.

        Args:
            own: `get` of the owner's dictionary.
            besides: attributes of the owner that may have.
        """
        for get, key, want in self._plain:
            value = (get or own)(key, MISSING)
            if (
                value is not want
                and (value.__class__ is not want.__class__ or token(value) != token(want))
                and not (get is None and key in besides)
            ):
                return False
        for get, key, held in self._objects:
            value = held()
            if value is None or (get or own)(key, MISSING) is not value:
                return False
        return not self._deep or all(token((get or own)(key, MISSING)) == want for get, key, want in self._deep)

    @property
    def numbers(self) -> list[str]:
        """The names of the owner's attributes that are numbers, truth values, texts and the like."""
        return [key for get, key, value in self._plain if get is None and value.__class__ in ATOMS]

    @property
    def defaults(self) -> list[str]:
        """The names of attributes of that kind that the owner has of its class, and may get of its own."""
        lacking = {key for get, key, value in self._plain if get is None and value is MISSING and isinstance(key, str)}
        return [
            key
            for get, key, value in self._plain
            if get is not None and isinstance(key, str) and key in lacking and value.__class__ in ATOMS
        ]

    @property
    def is_over(self) -> bool:
        """Whether something that it compares with is no more, so that it will never hold again."""
        return any(held() is None for _, _, held in self._objects)

    def changes(self, own: Get, besides: frozenset[str] = frozenset()) -> Iterator[Change]:
        """The places that have changed; arguments as of `holds`."""
        for (get, key, path, want), old in zip(self.reads, self._old, strict=True):
            value = (get or own)(key, MISSING)
            if token(value) != want and not (get is None and key in besides):
                yield Change(path, old, value)


def _cannot_change(value: Any) -> bool:
    """Whether a value that is the same object as before is as it was before; it holds no objects but types."""
    if value.__class__ is tuple:
        return all(map(_cannot_change, value))
    return value.__class__ in ATOMS or isinstance(value, type | ModuleType)


def _short(value: Any) -> str:
    """A number or the like, or a few of them, as text; of anything else nothing."""
    if value is MISSING:
        return "nothing"
    parts = list(value) if isinstance(value, list | tuple) and len(value) <= SHORT else [value]
    if isinstance(value, np.ndarray) and value.size <= SHORT and not value.dtype.hasobject:
        return repr(value)
    text = repr(value) if all(part.__class__ in ATOMS for part in parts) else ""
    return text if len(text) < 60 else ""
