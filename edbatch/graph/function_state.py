"""What a function depends on besides its arguments: its owner's state, its globals and its closure.

That is the contract of cells and replayed functions. The state is found without running anything: from the function and
its owner, attributes, items and globals are followed as far as the code of the function, and of the functions and
methods that are found so, has names for them. An attribute that no such code names may change as it likes.
"""

from __future__ import annotations

import builtins
import sys
from array import array
from collections import OrderedDict, deque
from dataclasses import is_dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from edbatch.base.exact import Identity
from edbatch.errors import goes_on, warn
from edbatch.graph.attributes import OPENED, WRAPPERS, is_library, names_in, names_of, old_text, slots_of, special_of
from edbatch.graph.guard import Guard
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.step import (
    ANY,
    FUNCTION,
    MISSING,
    OWNER,
    READ,
    ROOTS,
    STATIC,
    Alias,
    Read,
    Step,
    attribute_of,
    held_by,
    is_atom,
    token,
)  # fmt: skip

#: Leaves of a state, at most; what is left has to be replaced, not changed in place, to be seen.
LEAVES = 256
#: Bytes of an array whose bits are compared; a larger one is known by which array it is.
ARRAY_BYTES = 1 << 16

_SETS = set | frozenset | deque | bytearray | array
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")
_LEAVES = (Read.VALUE, Read.ITEM, Read.HELD, Read.ATTRIBUTE)


def function_state(of: str, function: Any, owner: Any = None, static: Any = None) -> Guard:
    """What a function depends on now, to be compared later.

    Args:
        of: what it is called, for errors.
        owner: the object whose method it is; None: there is none.
        static: what is given by keyword.
    """
    names, dynamic = frozenset[str](), False
    while True:
        found = _State(names, dynamic)
        found.through(owner, function, static)
        if found.read <= names and found.dynamic == dynamic:
            break
        names, dynamic = names | found.read, found.dynamic
    if found.left and goes_on((of, LEAVES)):
        warn(
            f"{of} depends on more than {LEAVES} numbers and objects: changes inside of {found.left[0]} (the first of "
            f"{len(found.left)}) are not seen; replace the whole, or pass what changes as an argument"
        )
    return Guard(of, function, found.steps, found.slots[len(ROOTS) :], found.gone)


def name_of(function: Any) -> str:
    """What a function is called, with its class."""
    return getattr(function, "__qualname__", type(function).__qualname__).replace("<locals>.", "")


class _State:
    """One way through all that names lead to, what is near first.

    Args:
        names: of attributes that are followed; `dynamic`: of users' objects, all are.

    Attributes:
        slots: the roots, and what steps have read.
        steps, gone: of a guard.
        read, dynamic: what the codes read that were found.
        left: what was not looked into, as there was too much.
    """

    def __init__(self, names: frozenset[str], dynamic: bool) -> None:
        self.slots: list[Any] = []
        self.steps: list[Step] = []
        self.gone: list[Any] = []
        self.read: set[str] = set()
        self.dynamic = dynamic
        self.left: list[str] = []
        self._names, self._all = names, dynamic
        self._home: set[str] = set()  # packages of the function and its owner, wherever they are installed
        self._leaves = 0
        self._opened: dict[int, int] = {}  # slots of what has parts, by `id`
        self._seen: set[int] = set()
        self._waiting: deque[tuple[Any, int, str]] = deque()

    def through(self, *roots: Any) -> None:
        """Follow everything."""
        self.slots += roots
        modules = [getattr(roots[FUNCTION], "__module__", None) or "", type(roots[OWNER]).__module__]
        self._home = {module.partition(".")[0] for module in modules}.difference(sys.stdlib_module_names, ["edbatch"])
        for slot, path in ((FUNCTION, ""), (OWNER, "self"), (STATIC, "keywords")):
            if roots[slot] is not None:
                self._opened[id(roots[slot])] = slot
                self._waiting.append((roots[slot], slot, path))
        while self._waiting:
            self._look_into(*self._waiting.popleft())

    def _add(self, kind: Read, holder: int, key: Any, path: str, want: Any = None) -> int:
        """Add what a step reads, and follow that unless its token is given; the slot."""
        value = READ[kind](self.slots[holder], key)
        slot = len(self.slots)
        self.slots.append(value)
        self._leaves += kind in _LEAVES and value is not MISSING and want is not ANY and key not in _OF_FUNCTIONS
        if want is None and is_atom(value):
            want = token(value)
        elif want is None and id(value) in self._opened:
            want = Alias(self._opened[id(value)])
        elif want is None:
            opens = self._has_parts(value, path)
            want = type(value) if opens else token(value, kind, self.gone)
            if opens:
                self._opened[id(value)] = slot
            if id(value) not in self._seen:
                self._waiting.append((value, slot, path))
            self._seen.add(id(value))
        self.steps.append(Step(kind, holder, key, path, want, old_text(value)))
        return slot

    def _is_users(self, module: str) -> bool:
        return module.partition(".")[0] in self._home or not is_library(module)

    def _has_parts(self, value: Any, path: str) -> bool:
        """Whether a value is equal to another whose parts are."""
        kind = type(value)
        if isinstance(value, np.ndarray):
            return value.dtype.hasobject or value.nbytes <= ARRAY_BYTES
        size = len(value) if isinstance(value, list | tuple | dict | _SETS) else -1
        is_value = is_dataclass(kind) or not kind.__weakrefoffset__  # else it is known without being kept alive
        is_value = is_value and self._is_users(kind.__module__) and not isinstance(value, type)
        if not (is_value or size >= 0 or kind in OPENED):
            return False
        if self._leaves + size > LEAVES:
            self.left.append(path)
            return False
        return True

    def _look_into(self, value: Any, slot: int, path: str) -> None:
        kind = type(value)
        if self._leaves > LEAVES and self._is_users(getattr(value, "__module__", None) or kind.__module__):
            self.left.append(path)
        elif isinstance(value, FunctionType):
            self._function(value, slot)
        elif isinstance(value, type):
            self._class(value, slot)
        elif isinstance(value, ModuleType):
            if self._is_users(value.__name__):
                self._named([name for name in list(vars(value)) if name in self._names], slot, path)
        else:
            for name in OPENED.get(kind, WRAPPERS.get(kind, ())):
                self._add(Read.ATTRIBUTE, slot, name, path if kind in WRAPPERS else f"{path}.{name}")
            self._parts(value, slot, path)
            self._object(value, slot, path)

    def _parts(self, value: Any, slot: int, path: str) -> None:
        """What a container holds, if it was opened."""
        if self._opened.get(id(value)) != slot:
            return
        if isinstance(value, dict) and {str, int}.issuperset(map(type, value)):
            keys = tuple(dict.keys(value))
            self._add(Read.KEYS, slot, keys, f"the keys of {path}", token(keys, Read.KEYS))
            if isinstance(value, OrderedDict):  # whose order is its own, and not that of its keys as a dictionary's
                self._add(Read.PARTS, slot, None, f"the order of {path}", token(value, Read.PARTS))
            for key in keys:
                self._add(Read.VALUE, slot, key, f"{path}[{key!r}]" if slot != STATIC else key)
        elif isinstance(value, list | tuple):
            self._add(Read.SIZE, slot, type(value), f"the length of {path}", token(len(value)))
            for at in range(len(value)):
                self._add(Read.ITEM, slot, at, f"{path}[{at}]")
        elif isinstance(value, dict | np.ndarray | _SETS):
            self._add(Read.PARTS, slot, None, path, token(value, Read.PARTS))

    def _function(self, function: FunctionType, slot: int) -> None:
        code, scope = function.__code__, function.__globals__
        if self._is_users(scope.get("__name__", "")):
            names = names_of(code)
            self.read |= names.attributes
            self.dynamic |= names.dynamic and not code.co_name.startswith("__")
            held = self._add(Read.ATTRIBUTE, slot, "__globals__", "", ANY)
            for name in sorted(names.globals):
                if name in scope or name not in vars(builtins):
                    self._add(Read.VALUE, held, name, name)
            cells = self._add(Read.ATTRIBUTE, slot, "__closure__", "", ANY) if code.co_freevars else 0
            for at, name in enumerate(code.co_freevars):
                cell = self._add(Read.ITEM, cells, at, "", ANY)
                found = self._add(Read.ATTRIBUTE, cell, "cell_contents", name)
                if name == "__class__":  # of `super()`
                    self._add(Read.ATTRIBUTE, found, "__mro__", f"the bases of {code.co_qualname}'s class")
            for name in _OF_FUNCTIONS:
                self._add(Read.ATTRIBUTE, slot, name, f"{code.co_name}.{name}")
        self._named([name for name in vars(function) if name in self._names | {"__wrapped__"}], slot, code.co_name)

    def _class(self, kind: type, slot: int) -> None:
        """What a class holds for the names, or its bases do, and special methods."""
        users = [base for base in kind.__mro__ if self._is_users(base.__module__)]
        if not users:
            return
        for name in sorted(self._names | special_of(users, kind is type(self.slots[OWNER]))):
            held = held_by(kind, name)
            if self._all or (held is not MISSING and held is not vars(object).get(name)):
                self._add(Read.HELD, slot, name, f"{kind.__name__}.{name}")

    def _object(self, value: Any, slot: int, path: str) -> None:
        """What an object, and its class, hold for the names."""
        is_users = slot == OWNER or self._is_users(type(value).__module__)
        if is_users:
            self._add(Read.CLASS, slot, None, f"{path}.__class__")
            for name in slots_of(type(value)):
                if name in self._names or self._all:
                    self._add(Read.ATTRIBUTE, slot, name, f"{path}.{name}")
        if type(attribute_of(value, "__dict__")) is dict:
            self._named(names_in(value, self._names, self._all, is_users), slot, path)
        if isinstance(value, ParameterCollection):
            self._collection(value, slot, path)

    def _named(self, found: list[str], slot: int, path: str) -> None:
        """What a dictionary of attributes holds under names."""
        held = self._add(Read.ATTRIBUTE, slot, "__dict__", path, ANY) if found else 0
        for name in found:
            self._add(Read.VALUE, held, name, f"{path}.{name}")

    def _collection(self, collection: ParameterCollection, slot: int, path: str) -> None:
        """Which parameters a collection has; which are frozen, where somebody asks."""
        own, prefix = collection._parameters, collection._prefix
        held = self._add(Read.ATTRIBUTE, slot, "__dict__", path, ANY)
        at = self._add(Read.VALUE, held, "_parameters", path, Identity(own, self.gone))
        self._add(Read.SIZE, at, type(own), f"what is listed of {path}", token(len(own)))
        self._add(Read.VALUE, held, "_prefix", path)
        for name in own.listed(prefix):
            if names_in(own[name], self._names, False, False):
                self._add(Read.VALUE, at, name, f"parameter {name!r}")
