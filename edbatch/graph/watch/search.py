"""Finding all places that functions can have read, by the names in their codes and by what they can see."""

from __future__ import annotations

import abc
import dis
import functools
import gc
import io
import operator
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from importlib.util import resolve_name
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ReferenceType

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.watch.classes import SPECIAL, Registered, arrivals, holders, is_changeable, is_data
from edbatch.graph.watch.getters import Get, closure_get, there_get, weak_get, weak_vars_get
from edbatch.graph.watch.guard import ATOMS, CONTENTS, MISSING, Read
from edbatch.graph.watch.modules import is_pure, is_standard
from edbatch.graph.watch.parts import CELL_PREFIX, LARGE, Remembered, cached, inner, is_python, opened, parts, size
from edbatch.graph.watch.state import GLOBAL, draws, draws_by_name

# Names of code that reads attributes whose names may be computed.
_NAMES_BY_NAME = {"__dict__", "__getattribute__", "attrgetter", "methodcaller"}
# What reads classes past nearer ones, or past objects.
_NAMES_OF_CLASSES = {"super", "type", "__class__", "__mro__", "__bases__", "__base__", "mro"}

# Nothing a number follows from; whatever else is no object of a class written in Python cannot be looked into.
_INERT = (
    *ATOMS, type, ModuleType, BuiltinFunctionType, MethodWrapperType, WrapperDescriptorType, MethodDescriptorType,
    GetSetDescriptorType, MemberDescriptorType, property, classmethod, staticmethod, CodeType, np.ufunc, np.dtype,
    type(vars(Read)["key"]), operator.itemgetter, type(threading.Lock()), type(threading.RLock()), io.IOBase,
)  # fmt: skip
_IMMUTABLE = ("datetime", "decimal", "fractions", "re", "uuid", "pathlib", "zoneinfo", "functools", "typing", "types")


@dataclass(eq=False)
class Ran:
    """What is known of a function that ran.

    Args:
        code: its code.
        scope: its globals.
        objects: per run its arguments, what was returned to it, and its variables at the end, by `id`, with a name.
        is_dynamic: whether it read attributes of computed names.
        reads_scope: whether it read globals of computed names.
        gave_nothing: whether it returned None, or ended by an error, which looks alike from outside.
        names: of attributes that it read by texts that are no names.
    """

    code: CodeType
    scope: dict[str, Any]
    objects: tuple[dict[int, tuple[str, Any]], dict[int, tuple[str, Any]]] = field(default_factory=lambda: ({}, {}))
    is_dynamic: bool = False
    reads_scope: bool = False
    gave_nothing: bool = False
    names: set[str] = field(default_factory=set)

    def lasting(self) -> list[tuple[str, Any]]:
        """The objects that are not made anew each time it runs."""
        first, second = self.objects
        if first and second:
            first, second = opened(first, second), opened(second, first)
            return [found for key, found in second.items() if key in first]
        return [*first.values(), *second.values()]


class Search:
    """Finds all places that functions can have read.

    Args:
        ran: the functions.
        owner: whose places are read of the dictionary that a guard is given.
        once: what is done once, for errors.
        given: objects that are not looked into, but for their classes, by their `id`.
    """

    def __init__(self, ran: dict[CodeType, Ran], owner: Any, once: str, given: Mapping[int, Any]) -> None:
        self.ran = ran
        self.once = once
        self.given = given
        self._owner = owner
        self._reads: dict[Any, Read] = {}
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._lacking: dict[int, tuple[type, str, set[str]]] = {}
        self._containers: list[tuple[int, Any]] = []  # keys of reads of what is in containers, wherever these are
        self._kept: list[Any] = []  # so that no `id` is used twice

    def reads_of(self, function: Any) -> Iterable[Read]:
        """All of them."""
        self._note(function)
        todo = [_Sight(self, ran) for ran in self.ran.values()]
        for sight in todo:
            sight.look_around()
        done: set[FunctionType] = set()
        within = {part for code in self.ran for part in inner(code)}
        while True:
            found = [(s, f) for s in todo for f in self._functions.get(s.ran.code, ()) if f not in done]
            if not found:
                missing = [s for s in todo if s.ran.code.co_freevars and s.ran.code not in self._functions]
                for sight in missing:
                    if sight.ran.code not in within:
                        self._functions[sight.ran.code] = [
                            f for f in gc.get_referrers(sight.ran.code) if isinstance(f, FunctionType)
                        ]
                if not any(self._functions.get(s.ran.code) for s in missing):
                    break
            for sight, one in found:
                done.add(one)
                sight.look_into(one)
        for kind, path, names in self._lacking.values():
            get = arrivals(kind, names)
            if get is not None:
                self.read(kind, get, None, f"{path}: what class {kind.__name__} has got", ())
        return self._let_go().values()

    def _let_go(self) -> dict[Any, Read]:
        """The places; where a container has been found in one, it is read there and not kept alive."""
        places = {
            id(read.value): read
            for key, read in self._reads.items()
            if isinstance(read.value, CONTENTS) and read.get is not None and key not in self._containers
        }
        for key in self._containers:
            place = places.get(key[0])
            if place is not None and place.get is not None:
                self._reads[key] = self._reads[key]._replace(get=there_get(place.get, place.key, place.value))
        return self._reads

    def lacks(self, kind: type, names: Iterable[str], path: str) -> None:
        """Note that names were looked for in a class, of which each of its bases may get some that it has not."""
        self._lacking.setdefault(id(kind), (kind, path, set()))[2].update(names)

    def read(self, holder: Any, get: Get, key: Any, path: str, value: Any) -> None:
        """Note a place of a holder."""
        self._kept.append(holder)
        own = isinstance(holder, dict) and self._owner is not None and holder is getattr(self._owner, "__dict__", None)
        self._reads.setdefault((id(holder), key), Read(None if own else get, key, path, value))

    def contents(self, value: Any, path: str) -> None:
        """Note what is in a container, which cannot be referenced weakly."""
        self.read(value, lambda key, missing: value, None, path, value)
        self._containers.append((id(value), None))

    def _note(self, value: Any) -> None:
        """Note a function, and those that it wraps."""
        while value is not None:
            if isinstance(value, FunctionType):
                if value in (known := self._functions.setdefault(value.__code__, [])):
                    return
                known.append(value)
            value = getattr(value, "__wrapped__", None) if callable(value) else None


class _Sight:
    """What one function's code can see."""

    def __init__(self, search: Search, ran: Ran) -> None:
        self.ran = ran
        self._search = search
        # Of functions inside it too: a comprehension is one, whose variables are seen at its end only.
        self._codes = (ran.code, *inner(ran.code))
        self._names = dict.fromkeys(name for code in self._codes for name in code.co_names)
        self._names |= dict.fromkeys(ran.names)
        texts = (x for code in self._codes for x in code.co_consts if isinstance(x, str))
        self._texts = dict.fromkeys(x for x in texts if x.isidentifier())
        self._seen: set[int] = set()
        self._strict = not is_standard(ran.scope.get("__name__", ""))
        self._dynamic: set[type] = set()
        self._past = not _NAMES_OF_CLASSES.isdisjoint(self._names)
        steps = {step.opname for code in self._codes for step in dis.get_instructions(code)}
        # Whether it may look for an attribute in vain: it handles an error, or may have ended by one.
        self._in_vain = "PUSH_EXC_INFO" in steps or ran.gave_nothing
        self._matches = "MATCH_CLASS" in steps
        if self._matches:
            tuples = (x for code in self._codes for x in code.co_consts if isinstance(x, tuple))
            matched = (x for part in tuples for x in part if isinstance(x, str))
            self._names |= dict.fromkeys(["__match_args__", *matched])

    def look_around(self) -> None:
        """At globals, imports, arguments and what was returned."""
        scope, lasting = self.ran.scope, self.ran.lasting()
        drawn = next((name for code in self._codes if (name := draws_by_name(code, scope)) is not None), None)
        if self._strict and drawn is not None:
            raise EdBatchError(
                f"it calls numpy.random.{drawn}(); {self._search.once}, and would keep what it gave. Use "
                "eb.dropout, or pass what is random as an argument"
            )
        ran = self._search.ran
        is_dynamic = any(code in ran and ran[code].is_dynamic for code in self._codes)
        if is_dynamic or not _NAMES_BY_NAME.isdisjoint(self._names):
            seen = [value for _, value in lasting] + [scope[name] for name in self._names if name in scope]
            self._dynamic = {type(value) for value in seen if is_python(type(value)) or hasattr(value, "__dict__")}
            self._names |= self._texts
        if self.ran.reads_scope:
            for name in [*self._texts, *(name for name, value in scope.items() if value.__class__ in ATOMS)]:
                self._place(scope, scope.get, name, name)
        for kind in {type(value) for value in self._search.given.values()}:
            if is_changeable(kind):
                self.visit(kind, kind.__name__)
        for instruction in dis.get_instructions(self.ran.code):
            name = instruction.argval
            if instruction.opname in GLOBAL:
                self._place(scope, scope.get, name, name)
            elif instruction.opname == "IMPORT_NAME":
                for form in (name, f".{name}", f"..{name}"):
                    try:
                        module = sys.modules.get(resolve_name(form, scope.get("__package__") or None))
                    except ImportError:
                        continue
                    self.visit(module, form)
        attributes = {id(vars(value)) for _, value in lasting if hasattr(value, "__dict__")}  # which are places by name
        for name, value in lasting:
            if name in self.ran.code.co_freevars:
                continue  # see `look_into`
            if id(value) in self._search.given:
                continue
            is_fixed = isinstance(value, tuple | frozenset | np.generic)
            if isinstance(value, CONTENTS) and not is_fixed and id(value) not in attributes:
                self._search.contents(value, name)
            self.visit(value, name, checked=False)

    def look_into(self, function: FunctionType) -> None:
        """At closure and defaults."""
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            self._place(cell, closure_get(function, name), "cell_contents", name)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._place(function, weak_get(function), name, f"{function.__name__}.{name}")

    def _place(self, holder: Any, get: Get, key: Any, path: str, absent: bool = True, checked: bool = True) -> None:
        value = get(key, MISSING)
        if value is not MISSING or absent:
            self._search.read(holder, get, key, path, value)
        if value is not MISSING:
            self.visit(value, path, checked)

    def visit(self, value: Any, path: str, checked: bool = True) -> None:
        """Look at a value, and at what the code's names lead to from there.

        Raises:
            EdBatchError: `checked`, and it cannot be looked into.
        """
        holds_objects = isinstance(value, np.ndarray) and value.dtype.hasobject
        if id(value) in self._seen or id(value) in self._search.given:
            return
        self._seen.add(id(value))
        self._search._kept.append(value)
        if checked and self._strict and draws(value):
            raise EdBatchError(
                f"it reads {path}, which draws random numbers; {self._search.once}, and would keep those that came "
                "then. Use eb.dropout, or pass them as an argument"
            )
        if is_pure(type(value).__module__) and not holds_objects:
            self._extras(value, path)
            return
        self._search._note(value)
        if isinstance(value, ModuleType):
            if not is_pure(value.__name__):
                for name in self._names:
                    self._place(vars(value), vars(value).get, name, f"{path}.{name}", absent=False)
        elif isinstance(value, type):
            self._class(value, path)
        elif isinstance(value, Enum):
            self._extras(value, path)
        elif isinstance(value, FunctionType):
            for name in self._names:
                self._place(vars(value), vars(value).get, name, f"{path}.{name}", absent=False)
        elif isinstance(value, type(functools.lru_cache(len))):
            if self._strict:
                self._place(value, Remembered(value), None, f"what {path} remembers", checked=checked)
            for results in cached(value).values():
                self.visit(results, f"{path}()", checked)
        elif isinstance(value, CONTENTS):
            for name, part in parts(value):
                self.visit(part, f"{path}{name}", checked)
            if hasattr(value, "__dict__") or is_changeable(type(value)):
                self._object(value, path)
        elif isinstance(value, MethodType):
            self.visit(value.__self__, path, checked)
            self._search._note(value.__func__)
        elif isinstance(value, functools.partial):
            self.visit([value.func, value.args, value.keywords], path, checked)
        elif isinstance(value, slice):
            self.visit([value.start, value.stop, value.step], path, checked)
        elif isinstance(value, ReferenceType):
            self.visit(value(), f"{path}()", checked)
        elif isinstance(value, ContextVar):
            self._place(value, lambda key, missing: key.get(missing), value, f"{path}.get()")
        elif is_python(type(value)):
            self._object(value, path)
        elif isinstance(value, ATOMS):
            if type(value) not in ATOMS:
                self._object(value, path)
        elif checked and self._strict and not isinstance(value, _INERT) and type(value).__module__ not in _IMMUTABLE:
            raise EdBatchError(
                f"it reads {path}, of type {type(value).__module__}.{type(value).__qualname__}, whose changes cannot "
                "be seen; use numbers, NumPy arrays, parameters or objects of Python classes, or pass it as an argument"
            )

    def _extras(self, value: Any, path: str) -> None:
        """At numbers among the attributes of what is else no object that holds any."""
        own: Any = getattr(value, "__dict__", {})
        for name in self._names:
            if name in own and isinstance(own[name], ATOMS):
                self._place(own, weak_vars_get(value), name, f"{path}.{name}")

    def _class(self, value: type, path: str) -> None:
        """At what a class holds for the code's names, or may get."""
        self._search.lacks(value, self._names, path)
        if isinstance(value, abc.ABCMeta) and not is_standard(value.__module__):
            self._place(value, Registered(value), None, f"what {path} has registered")
        for name in self._names:
            self._held(value, name, path)
        if not is_standard(type(value).__module__) and type(value) is not type:
            self._class(type(value), f"type({path})")

    def _held(self, kind: type, name: str, path: str) -> None:
        for base in holders(kind, name, every=self._past):
            if base is not object and not is_pure(base.__module__):
                self._place(base, vars(base).get, name, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> None:
        kind, own = type(value), getattr(value, "__dict__", None)
        if own is not None or not isinstance(value, tuple):  # what holds a tuple, or finds it, tells its class
            self._search.read(value, weak_get(value), "__class__", f"{path}.__class__", kind)
        in_vain = kind in self._dynamic or self._in_vain or hasattr(kind, "__getattr__")
        names = dict.fromkeys([*self._names, *self._matched(kind)])
        if kind in self._dynamic and own is not None:
            names |= dict.fromkeys([*self._texts, *(name for name in own if not name.startswith(CELL_PREFIX))])
        self._search.lacks(kind, SPECIAL.union(names), path)
        for name in SPECIAL.difference(names):
            if any(map(is_changeable, holders(kind, name, every=False))):
                self._held(kind, name, path)
        for name in names:
            where = f"{path}.{name}"
            named = name in self._names or name in self._texts
            base = next(holders(kind, name, every=False), None)
            held = None if base is None else vars(base)[name]
            if own is not None and (name in own or base is not None or in_vain):
                large = not named and isinstance(own.get(name), CONTENTS) and size(own[name]) > LARGE
                if not large:
                    self._place(own, weak_vars_get(value), name, where, checked=named)
            if isinstance(held, MemberDescriptorType):
                self._place(value, weak_get(value), name, where)
            elif base is not None and (own is None or name not in own or self._past or is_data(held)):
                self._held(kind, name, path)

    def _matched(self, kind: type) -> Iterator[str]:
        """The attributes that a pattern of `match` reads of an object by their positions."""
        if self._matches:
            for base in kind.__mro__:
                yield from vars(base).get("__match_args__", ())
