"""What a sample is: all that it holds, told by classes and bits.

An object may be changed in place, and its `id` is another's once it is no more. So a sample is known by what it holds.
That is gone through once; from then on the same object is known at once, and of what can change in it is looked whether
it holds the same parts.
"""

from __future__ import annotations

import marshal
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from hashlib import blake2b
from itertools import chain
from operator import is_
from sys import getsizeof
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.attributes import CELL_PREFIX, slots_of
from edbatch.graph.expression import Expression
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import Parameter

#: What marshal writes by class and bits.
_PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes, type(Ellipsis)])
_BUILT_IN = frozenset([tuple, list, dict, set, frozenset, np.ndarray])
#: What has a text that tells it from all others of its class.
_TOLD_BY_TEXT = ("datetime", "decimal", "fractions", "uuid", "pathlib", "_decimal")

Part = tuple[Callable[[Any], Any], Any, Any]  # how it is read, what can change, and what it held


class Sample:
    """What a sample holds: values gone through, however deep they are.

    Args:
        strict: what cannot be looked into is an error; else it is left out.

    Attributes:
        digest: equal for two samples if they hold the same, 16 bytes.
        parts: what can change of it.
        bytes: that it takes, about.
        holds_expressions: whether there are some in it, which each call gives anew.
        classes: of its objects.
    """

    def __init__(self, values: tuple[Any, ...], place: str, strict: bool = True) -> None:
        self._place, self._strict = place, strict
        self._found: list[Any] = []
        self._numbers: dict[int, int] = {}  # of what can change, and may hold itself
        self._waiting: list[Any] = []
        self._parts: list[Part] = []
        self._classes: set[type] = set()
        self.bytes = 0
        self.holds_expressions = False
        self._values(values)
        while self._waiting:
            self._value(self._waiting.pop())
        self.digest = blake2b(marshal.dumps(self._found, 2), digest_size=16).digest()
        self.parts = tuple(self._parts)
        self.classes = frozenset(self._classes.difference(_PLAIN, _BUILT_IN))

    def _values(self, values: tuple[Any, ...]) -> None:
        """Go through several, next."""
        if _PLAIN.issuperset(map(type, values)):
            self._found.append(values)
            self.bytes += sum(map(getsizeof, values))
            return
        self._found.append(len(values))
        self._waiting.extend(reversed(values))

    def _value(self, value: Any) -> None:
        """Go through one."""
        kind = value.__class__
        if kind in _PLAIN:
            self._found.append(value)
            self.bytes += getsizeof(value)
            return
        number = self._numbers.get(id(value))
        if number is not None:
            self._found.append((number,))
            return
        self.bytes += getsizeof(value)
        self._classes.add(kind)
        self._found.append((_name_of(kind),))  # no value that is found is a tuple of one text
        if kind is tuple:
            self._values(value)
        elif isinstance(value, np.ndarray | np.generic | bytearray | array):
            self._bits(value)
        elif isinstance(value, Enum):
            self._found.append(value.name)
        elif isinstance(value, range | slice):
            self._found.append(repr(value))
        elif isinstance(value, Parameter | type | ModuleType | np.dtype):
            self._found.append(id(value))
        elif isinstance(value, Expression):
            self.holds_expressions = True
        elif isinstance(value, ParameterCollection):
            self._refuse(value, "which belongs to a model; expected a model as the first argument")
        elif isinstance(value, tuple | frozenset):
            self._values(tuple(value))
            self._attributes(value)
        elif isinstance(value, dict | MappingProxyType):
            self._container(value, _entries)
        elif isinstance(value, list | set | deque):
            self._container(value, tuple)
        elif kind.__module__ in _TOLD_BY_TEXT:
            self._found.append(repr(value))
        elif is_python(kind):
            self._object(value)
        elif hasattr(kind, "__dlpack__") and (held := _bits_of_tensor(value)) is not None:
            self.bytes += 2 * len(held)
            self._found.append(held)
            self._parts.append((_bits_of_tensor, value, held))
        else:
            self._refuse(value, "whose changes cannot be seen")

    def _bits(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            self._found.append(value.shape)
            self._container(value, lambda array: tuple(array.ravel().tolist()))
            return
        if type(value).__module__ not in ("numpy", "builtins", "array"):
            self._refuse(value, "whose changes cannot be seen")
        read = _bits_of_array if isinstance(value, np.ndarray | np.generic) else bytes
        held = read(value)
        self.bytes += 2 * (value.nbytes if isinstance(value, np.ndarray) else len(held))
        self._found.append(held)
        if not isinstance(value, np.generic):
            self._parts.append((read, value, held))

    def _container(self, value: Any, read: Callable[[Any], tuple[Any, ...]]) -> None:
        self._numbers[id(value)] = len(self._numbers)
        held = read(value)
        self._parts.append((read, value, held))
        self._values(held)
        self._attributes(value)

    def _attributes(self, value: Any) -> None:
        """Of a class that is derived from a container's."""
        if hasattr(value, "__dict__"):
            self._object(value)

    def _object(self, value: Any) -> None:
        self._numbers[id(value)] = len(self._numbers)
        held = attributes_of(value)
        kind = type(value)
        if not (is_dataclass(kind) and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            self._parts.append((lambda one: (type(one), *attributes_of(one)), value, (kind, *held)))
        self._values(held)

    def _refuse(self, value: Any, why: str) -> None:
        if self._strict:
            kind = type(value)
            raise EdBatchError(
                f"{self._place}: got {kind.__module__}.{kind.__qualname__}, {why}; a sample is made of numbers, texts, "
                "arrays, tuples, lists, dictionaries, sets and objects of Python classes. key= tells "
                "samples apart otherwise"
            )


def unchanged(parts: tuple[Part, ...]) -> bool:
    """Whether all that can change holds the same objects, or bits, as when it was gone through."""
    for read, value, held in parts:
        now = read(value)
        if now.__class__ is tuple:
            if len(now) != len(held) or not all(map(is_, now, held)):
                return False
        elif now != held:
            return False
    return True


_names: dict[type, str] = {}


def _name_of(kind: type) -> str:
    """A text that tells a class from all others."""
    found = _names.get(kind)
    if found is None:
        found = _names[kind] = f"{len(_names)} {kind.__qualname__}"
    return found


def _entries(value: Any) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(value.items()))


def _bits_of_array(value: Any) -> bytes:
    return f"{value.dtype.descr} {value.shape} ".encode() + value.tobytes()


def _bits_of_tensor(value: Any) -> bytes | None:
    """Of an array of another library; None if it cannot be read, or has a gradient, which would be lost."""
    try:
        return _bits_of_array(np.asarray(value))
    except (TypeError, RuntimeError):
        return None


def attributes_of(value: Any) -> tuple[Any, ...]:
    """The names of what is in the dictionary of an object, what is in it, and in its slots."""
    own = {name: held for name, held in getattr(value, "__dict__", {}).items() if not name.startswith(CELL_PREFIX)}
    in_slots = [getattr(value, name, None) for name in slots_of(type(value))]
    return (*own, *own.values(), *in_slots)


def is_python(kind: type) -> bool:
    """Whether all that an object holds are attributes: its classes are written in Python."""
    return all(
        base is object or base is SimpleNamespace or (base.__flags__ & 1 << 9 and not _has_state(base))
        for base in kind.__mro__
    )


def _has_state(kind: type) -> bool:
    """Whether objects have more than dictionary, weak references and slots by a class (which a C compiler made)."""
    slots = vars(kind).get("__slots__", ())
    count = 1 if isinstance(slots, str) else len(tuple(slots))
    base = kind.__base__.__basicsize__ if kind.__base__ is not None else 0
    return kind.__basicsize__ - base > 8 * (count + 2)
