"""What must be as it was for a trace to be right: compared exactly, by types and bits."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
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
WRAPPERS = (MethodType, partial, ReferenceType, slice)


class Read(NamedTuple):
    """A place that was read: where it is, what it is called, and what was there.

    None stands for `get` of the dictionary of the cell's owner, which a guard must not hold.
    """

    get: Get | None
    key: Any
    path: str
    value: Any


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
    """

    def __init__(self, reads: Iterable[Read]) -> None:
        self.reads = [Read(get, key, path, token(value)) for get, key, path, value in reads]
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

    def holds(self, own: Get) -> bool:
        """Whether nothing has changed; `own` is `get` of the owner's dictionary."""
        for get, key, want in self._plain:
            value = (get or own)(key, MISSING)
            if value is not want and (value.__class__ is not want.__class__ or token(value) != token(want)):
                return False
        for get, key, held in self._objects:
            value = held()
            if value is None or (get or own)(key, MISSING) is not value:
                return False
        return all(token((get or own)(key, MISSING)) == want for get, key, want in self._deep)

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

    def change(self, own: Get) -> tuple[str, bool] | None:
        """The first place that has changed, as text, and whether what is there now is a number."""
        for get, key, path, want in self.reads:
            value = (get or own)(key, MISSING)
            if token(value) != want:
                is_number = isinstance(value, int | float | complex | np.number) and not isinstance(value, bool)
                return f"{path} has become {_shown(value)}", is_number
        return None


def _cannot_change(value: Any) -> bool:
    """Whether a value that is the same object as before is as it was before; it holds no objects but types."""
    if value.__class__ is tuple:
        return all(map(_cannot_change, value))
    return value.__class__ in ATOMS or isinstance(value, type | ModuleType)


def _shown(value: Any) -> str:
    text = "nothing" if value is MISSING else repr(value)
    return text if len(text) < 60 else f"another {type(value).__name__}"
